//! How many connections, and how long they may take for everything.

use std::time::Duration;

/// How many connections, and how long they may take for everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at once.
    pub(crate) connections_max: usize,
    /// Connections from one peer address at once.
    pub(crate) connections_per_peer_max: usize,
    /// Bytes of a request's head.
    pub(crate) head_bytes_max: usize,
    /// Requests at once on one HTTP/2 connection.
    pub(crate) streams_max: u32,
    /// For a TLS handshake.
    pub(crate) handshake: Duration,
    /// For a request's head, from its first byte, and for the next request on an idle connection.
    pub(crate) head: Duration,
    /// Between two parts of a body, in either direction.
    pub(crate) body_idle: Duration,
}
