//! What a listener is told: where it is, what clients must trust, how many of everything, and how long for everything.

use std::net::SocketAddr;
use std::time::Duration;

use semel_config::Table;
use semel_config::render::{Lines, sized, timed};
use semel_config::value::{bytes, count, time};

use crate::tls::ServerTls;

/// More of anything than one process can have.
pub const MANY: u64 = 10_000_000;
/// The shortest and the longest that a timeout may be.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_hours(24);

/// What a listener is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Where clients come.
    pub listen: SocketAddr,
    /// What clients must trust; `None` for plain HTTP.
    pub tls: Option<ServerTls>,
    /// How many of everything.
    pub limits: Limits,
    /// How long for everything.
    pub timeouts: Timeouts,
}

/// How many of everything: `[bounds]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections_max: usize,
    /// Connections from one peer address at once.
    pub connections_per_peer_max: usize,
    /// Requests at once.
    pub in_flight_max: usize,
    /// Bytes of a request's head.
    pub head_bytes_max: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams_max: u32,
}

/// How long for everything: `[timeouts]`.
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
    /// How long everything is still served after SIGTERM, while the process says that it is not ready.
    pub grace: Duration,
    /// For running requests to finish after that.
    pub drain: Duration,
}

impl ListenerConfig {
    /// Plain HTTP at this address, and everything else at its default.
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, tls: None, limits: Limits::default(), timeouts: Timeouts::default() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 16_384,
            // Half of all: one peer, however many slow connections it opens, leaves room for others.
            connections_per_peer_max: 8_192,
            // As many as connections: requests whose bodies dawdle must not use up the places of others.
            in_flight_max: 16_384,
            head_bytes_max: 64 << 10,
            streams_max: 128,
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
            grace: Duration::from_secs(5),
            drain: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Takes what the table says instead.
    pub fn read(&mut self, table: &mut Table<'_>) {
        table.set("connections_max", &mut self.connections_max, count(1..=MANY));
        table.set("connections_per_peer_max", &mut self.connections_per_peer_max, count(1..=MANY));
        table.set("in_flight_max", &mut self.in_flight_max, count(1..=MANY));
        // hyper reads a head into one buffer, which is no smaller than this.
        table.set("head_bytes_max", &mut self.head_bytes_max, bytes(8 << 10..=16 << 20));
        table.set("streams_max", &mut self.streams_max, count(1..=65_536));
    }

    /// The names and values of that table, with one that only this process has.
    pub fn lines(&self, own: (&'static str, String)) -> Lines {
        vec![
            ("connections_max", self.connections_max.to_string()),
            ("connections_per_peer_max", self.connections_per_peer_max.to_string()),
            ("in_flight_max", self.in_flight_max.to_string()),
            own,
            ("head_bytes_max", sized(self.head_bytes_max as u64)),
            ("streams_max", self.streams_max.to_string()),
        ]
    }
}

impl Timeouts {
    /// Takes what the table says instead.
    pub fn read(&mut self, table: &mut Table<'_>) {
        read_timeout(table, "handshake", &mut self.handshake);
        read_timeout(table, "head", &mut self.head);
        read_timeout(table, "body", &mut self.body);
        read_timeout(table, "body_idle", &mut self.body_idle);
        table.set("grace", &mut self.grace, time(Duration::ZERO..=LONGEST));
        table.set("drain", &mut self.drain, time(Duration::ZERO..=LONGEST));
    }

    /// The names and values of that table, with those that only this process has.
    pub fn lines(&self, own: &[(&'static str, Duration)]) -> Lines {
        let first = [
            ("handshake", self.handshake),
            ("head", self.head),
            ("body", self.body),
            ("body_idle", self.body_idle),
        ];
        let last = [("grace", self.grace), ("drain", self.drain)];
        let all = first.into_iter().chain(own.iter().copied()).chain(last);
        all.map(|(name, span)| (name, timed(span))).collect()
    }
}

/// Puts a timeout of the table into its place, which keeps its default otherwise.
pub fn read_timeout(table: &mut Table<'_>, name: &'static str, place: &mut Duration) {
    table.set(name, place, time(SHORTEST..=LONGEST));
}
