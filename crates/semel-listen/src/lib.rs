//! Connections of HTTP clients, for whatever service answers them: the proxy, the claim server, an admin router.
//!
//! # Layout
//!
//! - [`config`](ListenerConfig): what a listener is told. [`acceptor`](Acceptor): accepts connections, up to a bound.
//! - `connection`: one connection, from its first byte to its end.
//! - [`http_service`](HttpService): what answers requests, and what a request knows of its connection.
//! - `abandonment`: how many requests a client gives up.
//! - [`admission`](admit): which requests are let in at all, in one form whatever the version of HTTP.
//! - [`stream`](ClientStream) gives up a client that does not read; `stalls` does the same within HTTP/2.
//! - [`body`](ClientBody): the body of a request. [`places`](InFlight): how many connections and requests there are.
//! - [`phase`], [`tls`]: the end of it all, certificates.

mod abandonment;
mod acceptor;
mod admission;
mod body;
pub mod config;
mod connection;
mod http_service;
pub mod phase;
mod places;
mod stalls;
mod stream;
pub mod tls;

pub use acceptor::{Acceptor, listen, raise_open_files};
pub use admission::{Refused, admit};
pub use body::{BodyError, ClientBody, Idle};
pub use config::{Limits, ListenerConfig, Timeouts};
pub use http_service::{Begun, ConnectionInfo, HttpService, ServiceBody, ServiceFuture};
pub use phase::{Drained, Phase};
pub use places::{InFlight, OneInFlight, Peers};
pub use stream::{ClientStream, PlainOrTls};
pub use tls::{Certificate, ServerTls};
