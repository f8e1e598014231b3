//! Connections of clients, for whatever answers them: the proxy, the claim server, the admin side.
//!
//! - [`door`]: connections come in, as many as there may be. [`peers`]: how many each peer has. [`limits`]: the bounds.
//! - [`connection`]: one of them, from its first byte to its end. [`first_bytes`]: which version of HTTP it speaks.
//! - [`admission`]: what is let in at all, in one form whatever the version of HTTP.
//! - [`answers`]: what answers requests. [`visit`]: what a request knows of its connection.
//! - [`line`]: the line itself, which gives up a client that does not read; [`stalls`]: the same within HTTP/2.
//! - [`body`]: a request's body. [`carried`]: an answer's. [`in_flight`]: how many requests there are.
//! - [`phase`], [`idle`], [`wire`], [`tls`], [`open_files`]: the end of it all, waiting, lines, certificates, limits.

mod admission;
mod answers;
mod body;
mod carried;
mod connection;
mod door;
mod first_bytes;
mod idle;
mod in_flight;
mod limits;
mod line;
mod open_files;
mod peers;
pub(crate) mod phase;
mod stalls;
pub(crate) mod tls;
mod visit;
mod wire;

pub(crate) use admission::admit;
pub(crate) use answers::Answers;
pub use body::{BodyError, ClientBody};
pub(crate) use carried::Carried;
pub(crate) use door::{Door, listen};
pub(crate) use idle::Idle;
pub(crate) use in_flight::{InFlight, OneInFlight};
pub(crate) use limits::Limits;
pub(crate) use line::Line;
pub use open_files::raise_open_files;
pub(crate) use peers::Peers;
pub(crate) use phase::Phase;
pub use tls::ServerTls;
pub(crate) use visit::Visit;
pub(crate) use wire::Wire;
