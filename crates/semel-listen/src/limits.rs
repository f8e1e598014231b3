//! How many connections, and how long they may take for everything.

use std::time::Duration;

/// How many connections, and how long they may take for everything.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections_max: usize,
    /// Connections from one peer address at once.
    pub connections_per_peer_max: usize,
    /// Bytes of a request's head.
    pub head_bytes_max: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams_max: u32,
    /// For a TLS handshake.
    pub handshake: Duration,
    /// For a request's head, from its first byte, and for the next request on an idle connection.
    pub head: Duration,
    /// Between two parts of a body, in either direction.
    pub body_idle: Duration,
}
