//! What is known of a request, from its first line to its end. It is counted and written when it is dropped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, Uri};
use semel::RecordId;
use semel_http::{Code, Decided};
use tokio::time::Instant;

use crate::front::Observed;
use semel_listen::OneInFlight;

/// What the proxy itself knows of an answer: an extension of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    /// Why, if it is the proxy that answers.
    pub(crate) code: Option<Code>,
    /// How long the upstream took for the head of its answer.
    pub(crate) upstream_took: Option<Duration>,
}

/// What is known of a request.
pub(crate) struct Entry {
    observed: Arc<Observed>,
    method: Method,
    uri: Uri,
    peer: SocketAddr,
    started_at: Instant,
    took: Duration,
    status: Option<StatusCode>,
    decided: Option<Decided>,
    said: Said,
    whole: bool,
    /// Dropped with it: in flight means until the last byte was handed over.
    _in_flight: Option<OneInFlight>,
}

impl Entry {
    pub(crate) fn new<B>(
        observed: Arc<Observed>,
        request: &Request<B>,
        peer: SocketAddr,
        in_flight: Option<OneInFlight>,
    ) -> Self {
        Self {
            observed,
            method: request.method().clone(),
            uri: request.uri().clone(),
            peer,
            started_at: Instant::now(),
            took: Duration::ZERO,
            status: None,
            decided: None,
            said: Said::default(),
            whole: true,
            _in_flight: in_flight,
        }
    }

    /// The head of the answer is known.
    pub(crate) fn answered<B>(&mut self, response: &Response<B>) {
        self.status = Some(response.status());
        let extensions = response.extensions();
        self.decided = extensions.get().copied();
        self.said = extensions.get().copied().unwrap_or_default();
        // Until its last byte was handed over.
        self.whole = false;
    }

    /// All of the answer was handed over.
    pub(crate) fn ended(&mut self) {
        self.whole = true;
    }

    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Without its query, which may hold anything.
    pub(super) fn path(&self) -> &str {
        self.uri.path()
    }

    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// `None` if the client went before there was an answer.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        self.status
    }

    pub(crate) fn decision(&self) -> &'static str {
        match (&self.decided, self.status) {
            (Some(decided), _) => decided.decision,
            (None, Some(_)) if self.said.code.is_some() => "refused",
            (None, Some(_)) => "pass",
            (None, None) => "gone",
        }
    }

    pub(super) fn code(&self) -> Option<Code> {
        self.said.code.or(self.decided.and_then(|decided| decided.code))
    }

    pub(super) fn key(&self) -> Option<RecordId> {
        self.decided.and_then(|decided| decided.key)
    }

    pub(crate) fn took(&self) -> Duration {
        self.took
    }

    pub(super) fn upstream_took(&self) -> Option<Duration> {
        self.said.upstream_took
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole && self.status.is_some()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.took = self.started_at.elapsed();
        let observed = Arc::clone(&self.observed);
        observed.tally.count(self);
        if let Some(log) = &observed.log {
            log.add(&log.form.line(self, observed.now()));
        }
    }
}
