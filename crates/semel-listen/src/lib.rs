//! Connections of HTTP clients, for whatever service answers them: the proxy, the claim server, an admin router.
//!
//! # Layout
//!
//! - [`acceptor`](Acceptor): accepts connections, up to a bound; `peers` counts them by peer; [`limits`](Limits) has the bounds.
//! - `connection`: one connection, from its first byte to its end; `first_bytes` finds its version of HTTP.
//! - [`http_service`](HttpService): what answers requests; [`connection_info`](ConnectionInfo): what a request knows of its connection.
//! - [`admission`](admit): which requests are let in at all, in one form whatever the version of HTTP.
//! - `client_stream` gives up a client that does not read; `stalls` does the same within HTTP/2.
//! - [`body`](ClientBody): the body of a request; `tracked_body`: of a response; [`in_flight`](InFlight): how many requests there are.
//! - [`phase`], [`idle`](Idle), [`plain_or_tls`](PlainOrTls), [`tls`], `open_files`: the end of it all, time-outs, streams, certificates,
//!   limits of the process.

mod acceptor;
mod admission;
mod body;
mod client_stream;
mod connection;
mod connection_info;
mod first_bytes;
mod http_service;
mod idle;
mod in_flight;
mod limits;
mod open_files;
mod peers;
pub mod phase;
mod plain_or_tls;
mod stalls;
pub mod tls;
mod tracked_body;

pub use acceptor::{Acceptor, listen};
pub use admission::{Refused, admit};
pub use body::{BodyError, ClientBody};
pub use client_stream::ClientStream;
pub use connection_info::ConnectionInfo;
pub use http_service::{HttpService, ServiceBody, ServiceFuture};
pub use idle::Idle;
pub use in_flight::{InFlight, OneInFlight};
pub use limits::Limits;
pub use open_files::raise_open_files;
pub use peers::Peers;
pub use phase::Phase;
pub use plain_or_tls::PlainOrTls;
pub use tls::ServerTls;
