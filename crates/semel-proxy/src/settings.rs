//! Everything that a proxy may be told, as it means after defaults were filled in.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use ipnet::IpNet;
use semel_http::{Principal, Settings};

use semel_listen::{Limits, ServerTls};
use semel_ops::store_url::Address;

/// Everything that a proxy may be told.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// Where clients come.
    pub listen: SocketAddr,
    /// Where requests go: scheme and authority, and a path to put before every path.
    pub upstream: Uri,
    /// Where outcomes are kept.
    pub store: Address,
    /// Who a caller is.
    pub principal: Principal,
    /// What clients see, route by route.
    pub http: Settings,
    /// What clients must trust; `None` for plain HTTP.
    pub tls: Option<ServerTls>,
    /// Whose certificates of an upstream with `https` are trusted, beside the system's.
    pub upstream_authorities: Option<PathBuf>,
    /// Which version of HTTP the upstream speaks.
    pub upstream_version: UpstreamVersion,
    /// Proxies in front of this one: what they say in `X-Forwarded-…` is passed on, and what others say is replaced.
    pub trusted_proxies: Vec<IpNet>,
    /// Where health, metrics and the dashboard are; `None` for nowhere.
    pub admin: Option<SocketAddr>,
    /// The file with the tokens of those who may look at the dashboard there, and act; without one, everybody on this machine may.
    pub admin_tokens_file: Option<PathBuf>,
    /// Where operators' actions are written down; `None` for the program's own log.
    pub audit: Option<PathBuf>,
    /// What is written of each request.
    pub access_log: AccessLog,
    /// How many of everything.
    pub bounds: Bounds,
    /// How long for everything.
    pub timeouts: Timeouts,
}

impl ProxySettings {
    /// What of it goes for connections of clients.
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

/// Which version of HTTP the upstream speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamVersion {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, without asking first if the upstream is plain.
    Http2,
}

/// What is written of each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// Nothing.
    Off,
    /// A line for people.
    #[default]
    Text,
    /// A line of JSON.
    Json,
}

/// How many of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections from clients at once.
    pub connections_max: usize,
    /// Connections from one peer address at once.
    pub connections_per_peer_max: usize,
    /// Requests at once.
    pub in_flight_max: usize,
    /// Bytes of bodies held in memory at once, for claimed requests and the responses to them.
    pub held_bytes_max: usize,
    /// Bytes of a request's head.
    pub head_bytes_max: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams_max: u32,
    /// Connections to the upstream that are kept while idle.
    pub upstream_idle_max: usize,
}

/// How long for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a TLS handshake.
    pub handshake: Duration,
    /// For a request's head, from its first byte, and for the next request on an idle connection.
    pub head: Duration,
    /// For the whole body of a covered request.
    pub body: Duration,
    /// Between two parts of a body, in either direction.
    pub body_idle: Duration,
    /// For a connection to the upstream.
    pub connect: Duration,
    /// For the head of the upstream's response.
    pub response: Duration,
    /// Between two parts of what goes over an upgraded connection (a websocket, say), in either direction.
    pub upgraded_idle: Duration,
    /// How long an idle connection to the upstream is kept.
    pub upstream_idle: Duration,
    /// For the store to answer a claim.
    pub store: Duration,
    /// For running requests to finish once the proxy was told to stop.
    pub drain: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections_max: 16_384,
            // Half of all: one peer, however many slow connections it opens, leaves room for others.
            connections_per_peer_max: 8_192,
            // As many as connections: requests whose bodies dawdle must not use up the places of others.
            in_flight_max: 16_384,
            held_bytes_max: 256 << 20,
            head_bytes_max: 64 << 10,
            streams_max: 128,
            upstream_idle_max: 256,
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
            connect: Duration::from_secs(5),
            response: Duration::from_mins(1),
            upgraded_idle: Duration::from_mins(5),
            upstream_idle: Duration::from_secs(4),
            store: Duration::from_secs(5),
            drain: Duration::from_secs(30),
        }
    }
}
