//! The service that answers requests, and what a request knows of the connection that it came on.

use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::abandonment::Abandonment;
use crate::places::Place;
use crate::stalls::{HandedOver, Stalls};

/// No answer was handed over yet.
const NEVER: u64 = u64::MAX;

/// The body of every response.
///
/// One type for all services: hyper's connections and h2 are then compiled once, here, and not for each of them again.
pub type ServiceBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;
/// A response that is being made.
pub type ServiceFuture = Pin<Box<dyn Future<Output = Response<ServiceBody>> + Send>>;

/// The service that answers requests: the proxy, the claim server, an admin router.
pub trait HttpService: Send + Sync + 'static {
    /// Answers one request.
    fn call(self: Arc<Self>, request: Request<Incoming>, connection: ConnectionInfo) -> ServiceFuture;
}

/// What a request knows of the connection that it came on. Whoever holds it holds the connection's place.
#[derive(Clone, Debug)]
pub struct ConnectionInfo(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    peer: SocketAddr,
    requests: AtomicU64,
    /// Whether the process is about to stop: clients are asked to open their next connection elsewhere.
    is_leaving: AtomicBool,
    started_at: Instant,
    /// When the last answer was handed over, in milliseconds from the start; [`NEVER`] before that.
    answered_at_millis: AtomicU64,
    abandonment: Abandonment,
    /// Only for connections where an answer that is not read does not block the line.
    stalls: Option<Arc<Stalls>>,
    place: Place,
}

impl ConnectionInfo {
    pub(crate) fn new(peer: SocketAddr, place: Place, stalls: Option<Arc<Stalls>>) -> Self {
        Self(Arc::new(Inner {
            peer,
            requests: AtomicU64::new(0),
            is_leaving: AtomicBool::new(false),
            started_at: Instant::now(),
            answered_at_millis: AtomicU64::new(NEVER),
            abandonment: Abandonment::default(),
            stalls,
            place,
        }))
    }

    /// The other end of the connection.
    pub fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// Counts a request that is about to be served. `None` if the client gives up most of its requests, and many: nothing is to be
    /// begun for it now.
    pub fn begin(&self) -> Option<Begun> {
        let second = self.0.started_at.elapsed().as_secs();
        self.0.abandonment.begin(second).then(|| Begun { connection: self.clone(), has_ended: false })
    }

    /// Counts one more request.
    pub(crate) fn count_request(&self) {
        if self.0.requests.fetch_add(1, Ordering::Relaxed) == 0 {
            self.0.place.asked();
        }
    }

    /// How many requests there were, and how many hold it now.
    pub(crate) fn activity(&self) -> (u64, usize) {
        (self.0.requests.load(Ordering::Relaxed), Arc::strong_count(&self.0))
    }

    /// An answer was handed over, or given up.
    pub(crate) fn answer_ended(&self) {
        let millis = u64::try_from(self.0.started_at.elapsed().as_millis()).unwrap_or(NEVER);
        self.0.answered_at_millis.store(millis, Ordering::Relaxed);
    }

    /// How long ago the last answer was handed over; `None` before the first.
    pub(crate) fn since_last_answer(&self) -> Option<Duration> {
        let millis = self.0.answered_at_millis.load(Ordering::Relaxed);
        (millis != NEVER).then(|| self.0.started_at.elapsed().saturating_sub(Duration::from_millis(millis)))
    }

    /// The process is about to stop.
    pub(crate) fn leave(&self) {
        self.0.is_leaving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.0.is_leaving.load(Ordering::Relaxed)
    }

    /// Watches an answer that may not be read.
    pub(crate) fn watch_answer(&self) -> Option<HandedOver> {
        self.0.stalls.as_ref().map(|stalls| stalls.watch())
    }
}

/// A request that is served. Dropped before it has ended, it counts as one that its client gave up.
#[derive(Debug)]
pub struct Begun {
    connection: ConnectionInfo,
    has_ended: bool,
}

impl Begun {
    /// Its answer came to its end, whether good or bad.
    pub fn ended(&mut self) {
        self.has_ended = true;
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.has_ended {
            let inner = &self.connection.0;
            inner.abandonment.abandon(inner.started_at.elapsed().as_secs());
        }
    }
}

#[cfg(test)]
mod tests;
