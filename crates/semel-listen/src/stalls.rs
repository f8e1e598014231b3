//! Answers of one HTTP/2 connection that their client does not read.
//!
//! With HTTP/1.1 a client that does not read blocks the line, which [`stream`](crate::stream) sees. With HTTP/2 it only
//! opens no window for its stream, and may keep the line itself busy: nobody asks the answer's body for more, and so
//! nobody would notice.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use crate::http_service::{ConnectionInfo, ServiceBody};

/// No part is waiting to be taken.
const NOTHING_WAITS: u64 = u64::MAX;

/// The answers of one connection.
#[derive(Debug)]
pub(crate) struct Stalls {
    started_at: Instant,
    answers: Mutex<Vec<Weak<AtomicU64>>>,
}

/// One answer: when its last part was handed over, for as long as nobody has asked for the next.
#[derive(Debug)]
pub(crate) struct HandedOver {
    started_at: Instant,
    at_millis: Arc<AtomicU64>,
}

impl Stalls {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { started_at: Instant::now(), answers: Mutex::default() })
    }

    /// Watches one more answer, from now on.
    pub(crate) fn watch(&self) -> HandedOver {
        let watched = HandedOver { started_at: self.started_at, at_millis: Arc::default() };
        watched.handed_over();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are over are forgotten when the list would have to grow.
        if answers.len() == answers.capacity() {
            answers.retain(|answer| answer.strong_count() > 0);
        }
        answers.push(Arc::downgrade(&watched.at_millis));
        watched
    }

    /// Whether some answer has waited to be read for longer than this.
    pub(crate) fn is_any_older_than(&self, span: Duration) -> bool {
        let oldest = millis(self.started_at.elapsed().saturating_sub(span));
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.iter().filter_map(Weak::upgrade).any(|at_millis| at_millis.load(Ordering::Relaxed) < oldest)
    }
}

impl HandedOver {
    /// A part was handed over; the next is asked for when the client has room for it.
    pub(crate) fn handed_over(&self) {
        self.at_millis.store(millis(self.started_at.elapsed()), Ordering::Relaxed);
    }

    /// The client has room, and it is the upstream that is waited for.
    pub(crate) fn asked_for_more(&self) {
        self.at_millis.store(NOTHING_WAITS, Ordering::Relaxed);
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(NOTHING_WAITS)
}

/// The body of a response on its way to a client: it notes whether it is asked for more.
pub(crate) struct TrackedBody {
    body: ServiceBody,
    handed_over: Option<HandedOver>,
    /// Its connection is not idle before it is over.
    connection: ConnectionInfo,
}

impl TrackedBody {
    pub(crate) fn new(body: ServiceBody, connection: ConnectionInfo) -> Self {
        Self { body, handed_over: connection.watch_answer(), connection }
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        self.connection.answer_ended();
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = <ServiceBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &self.handed_over {
            Some(answer) if polled.is_ready() => answer.handed_over(),
            Some(answer) => answer.asked_for_more(),
            None => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod watching_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_an_answer_that_waits_for_its_client_stalls() {
        let stalls = Stalls::new();
        let (reading, waiting) = (stalls.watch(), stalls.watch());
        waiting.asked_for_more();
        tokio::time::advance(Duration::from_secs(20)).await;
        assert!(stalls.is_any_older_than(Duration::from_secs(10)));
        reading.handed_over();
        assert!(!stalls.is_any_older_than(Duration::from_secs(10)));
        tokio::time::advance(Duration::from_secs(20)).await;
        drop(reading);
        assert!(!stalls.is_any_older_than(Duration::from_secs(10)), "one that is over waits for nobody");
    }
}
