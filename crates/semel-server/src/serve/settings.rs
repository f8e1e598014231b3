//! Everything that a server may be told, as it means after defaults were filled in.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderMap;
use semel::{Error, ErrorKind, Result};

use super::waits::WAITING_MAX;
use crate::access::Tokens;
use semel_listen::{Limits, ServerTls};
use semel_ops::store_url::Address;

/// Everything that a server may be told.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Where callers come.
    pub listen: SocketAddr,
    /// Where records are kept.
    pub store: Address,
    /// Who may ask. With none, everybody may, and only this machine can.
    pub tokens: Tokens,
    /// Where operators' actions are written down; `None` for the program's own log.
    pub audit: Option<PathBuf>,
    /// What callers must trust; `None` for plain HTTP.
    pub tls: Option<ServerTls>,
    /// How many of everything.
    pub bounds: Bounds,
    /// How long for everything.
    pub timeouts: Timeouts,
    /// What joins the span of a request to the trace that its head names, if somebody collects traces.
    pub join_trace: Option<fn(&tracing::Span, &HeaderMap)>,
}

/// How many of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at once.
    pub connections_max: usize,
    /// Connections from one peer address at once.
    pub connections_per_peer_max: usize,
    /// Requests at once, those that wait included.
    pub in_flight_max: usize,
    /// Requests that wait at once, for a record to settle.
    pub waiting_max: usize,
    /// Bytes of a request's head.
    pub head_bytes_max: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams_max: u32,
}

/// How long for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a TLS handshake.
    pub handshake: Duration,
    /// For a request's head, from its first byte, and for the next request on an idle connection.
    pub head: Duration,
    /// For the whole body of a request.
    pub body: Duration,
    /// Between two parts of a body, in either direction.
    pub body_idle: Duration,
    /// For running requests to finish once the server was told to stop.
    pub drain: Duration,
}

impl ServerSettings {
    /// A server for tests and trials: on a free port of this machine, in memory, without tokens.
    pub fn in_memory() -> Self {
        Self::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Address::Memory)
    }

    /// Everything else at its default.
    pub fn new(listen: SocketAddr, store: Address) -> Self {
        Self {
            listen,
            store,
            tokens: Tokens::none(),
            audit: None,
            tls: None,
            bounds: Bounds::default(),
            timeouts: Timeouts::default(),
            join_trace: None,
        }
    }

    /// Whether they go together. Without tokens, only this machine may reach the server.
    pub fn check(&self) -> Result<()> {
        let address = self.listen;
        if address.ip().is_loopback() || !self.tokens.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{address} may be reached by others than this machine, and without tokens everybody could do everything: make \
             one with `semel token new` and give --tokens FILE, or listen on 127.0.0.1:{}",
            address.port()
        );
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// What of it goes for connections.
    pub(super) fn limits(&self) -> Limits {
        let (bounds, timeouts) = (&self.bounds, &self.timeouts);
        Limits {
            connections_max: bounds.connections_max,
            connections_per_peer_max: bounds.connections_per_peer_max,
            head_bytes_max: bounds.head_bytes_max,
            streams_max: bounds.streams_max,
            handshake: timeouts.handshake,
            head: timeouts.head,
            body_idle: timeouts.body_idle,
        }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections_max: 16_384,
            // Half of all: one peer, however many slow connections it opens, leaves room for others.
            connections_per_peer_max: 8_192,
            // As many as connections: requests whose bodies dawdle must not use up the places of others.
            in_flight_max: 16_384,
            waiting_max: WAITING_MAX,
            head_bytes_max: 64 << 10,
            streams_max: 1_024,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(30),
            body: Duration::from_mins(1),
            body_idle: Duration::from_secs(30),
            drain: Duration::from_secs(30),
        }
    }
}
