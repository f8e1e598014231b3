//! Clients: their connections, and what they send.
//!
//! - [`accept`]: connections come in, as many as there may be. [`peers`]: how many each peer has.
//! - [`connection`]: one of them, from its first byte to its end. [`first_bytes`]: which version of HTTP it speaks.
//! - [`line`]: the line itself, which gives up a client that does not read. [`body`]: a request's body.

mod accept;
mod body;
mod connection;
mod first_bytes;
mod line;
mod peers;

pub(super) use accept::{Door, listen};
pub use body::{BodyError, ClientBody};
pub(super) use line::Line;
pub(super) use peers::{Peers, Place};
