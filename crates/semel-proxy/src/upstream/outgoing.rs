//! A request's body on its way to the upstream, watched from outside, and how long the head of its answer may take.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use semel_http::RequestBody;
use tokio::time::{Instant, Sleep};

use semel_listen::ClientBody;

/// The body of a request that is sent to the upstream.
pub(crate) type Sent = Outgoing<RequestBody<ClientBody>>;

/// A request's body on its way to the upstream.
#[derive(Debug)]
pub(crate) struct Outgoing<B> {
    body: B,
    /// `None` for a body that had ended before it began: there is nothing to watch.
    progress: Option<Arc<Progress>>,
}

/// How far a body has come.
#[derive(Debug)]
pub(super) struct Progress {
    started_at: Instant,
    /// When its last frame was taken, in milliseconds since the start.
    last_frame_ms: AtomicU64,
    failed: AtomicBool,
}

impl<B: Body> Outgoing<B> {
    pub(crate) fn new(body: B) -> Self {
        let progress = (!body.is_end_stream()).then(|| Arc::new(Progress::new()));
        Self { body, progress }
    }

    pub(super) fn progress(&self) -> Option<Arc<Progress>> {
        self.progress.clone()
    }
}

impl Progress {
    fn new() -> Self {
        Self { started_at: Instant::now(), last_frame_ms: AtomicU64::new(0), failed: AtomicBool::new(false) }
    }

    fn frame_taken(&self, failed: bool) {
        let elapsed = u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_frame_ms.store(elapsed, Ordering::Relaxed);
        self.failed.store(failed, Ordering::Relaxed);
    }

    /// When the last frame was taken, the end of the body included.
    fn last_frame_at(&self) -> Option<Instant> {
        self.started_at.checked_add(Duration::from_millis(self.last_frame_ms.load(Ordering::Relaxed)))
    }

    /// Whether the client's side of it failed.
    pub(super) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

impl<B> Body for Outgoing<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let (Poll::Ready(frame), Some(progress)) = (&polled, &self.progress) {
            progress.frame_taken(matches!(frame, Some(Err(_))));
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

pin_project! {
    /// A span from the last part of a request that went out: a long upload is not a slow answer.
    pub(super) struct Patience {
        span: Duration,
        #[pin]
        timer: Sleep,
        progress: Option<Arc<Progress>>,
    }
}

impl Patience {
    pub(super) fn new(span: Duration, progress: Option<Arc<Progress>>) -> Self {
        Self { span, timer: tokio::time::sleep(span), progress }
    }

    /// Ready once nothing went out for the whole span. The timer is not touched by each part: when it fires, it is set again to
    /// the end of the span that the last part began.
    pub(super) fn poll_over(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        loop {
            ready!(this.timer.as_mut().poll(cx));
            let last_at = this.progress.as_ref().and_then(|progress| progress.last_frame_at());
            let over_at = last_at.and_then(|last_at| last_at.checked_add(*this.span));
            match over_at.filter(|over_at| *over_at > this.timer.deadline()) {
                Some(over_at) => this.timer.as_mut().reset(over_at),
                None => return Poll::Ready(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};
    use tokio::time::{advance, timeout};

    use super::*;

    const SPAN: Duration = Duration::from_mins(1);

    /// How long the patience lasts with a body of one frame that goes out after so long.
    async fn waited(sent_after: Duration) -> Duration {
        let started_at = Instant::now();
        let mut body = Outgoing::new(Full::new(Bytes::from_static(b"body")));
        let mut patience = Box::pin(Patience::new(SPAN, body.progress()));
        let mut over = std::future::poll_fn(|cx| patience.as_mut().poll_over(cx));
        assert!(timeout(sent_after, &mut over).await.is_err(), "nothing is over yet");
        body.frame().await;
        over.await;
        started_at.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_take_one_span_from_the_last_part_of_its_request() {
        for sent_after in [Duration::from_millis(1), Duration::from_secs(30), Duration::from_secs(59)] {
            let waited = waited(sent_after).await;
            assert!(waited >= SPAN && waited < sent_after + SPAN + Duration::from_secs(1), "{waited:?}");
        }
        advance(SPAN).await;
    }
}
