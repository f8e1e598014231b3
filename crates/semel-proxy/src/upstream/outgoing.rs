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
#[derive(Debug, Default)]
pub(super) struct Progress {
    frames: AtomicU64,
    failed: AtomicBool,
}

impl<B: Body> Outgoing<B> {
    pub(crate) fn new(body: B) -> Self {
        let progress = (!body.is_end_stream()).then(Arc::default);
        Self { body, progress }
    }

    pub(super) fn progress(&self) -> Option<Arc<Progress>> {
        self.progress.clone()
    }
}

impl Progress {
    /// How many frames were taken, the end of the body included.
    pub(super) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
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
            progress.frames.fetch_add(1, Ordering::Relaxed);
            progress.failed.store(matches!(frame, Some(Err(_))), Ordering::Relaxed);
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
    /// A span that starts again for as long as the request's body keeps going out: a long upload is not a slow answer.
    pub(super) struct Patience {
        span: Duration,
        #[pin]
        timer: Sleep,
        progress: Option<Arc<Progress>>,
        frames_seen: u64,
    }
}

impl Patience {
    pub(super) fn new(span: Duration, progress: Option<Arc<Progress>>) -> Self {
        Self { span, timer: tokio::time::sleep(span), progress, frames_seen: 0 }
    }

    /// Ready once nothing went out for the whole span.
    pub(super) fn poll_over(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        loop {
            ready!(this.timer.as_mut().poll(cx));
            let frames = this.progress.as_ref().map_or(0, |progress| progress.frames());
            if frames == *this.frames_seen {
                return Poll::Ready(());
            }
            *this.frames_seen = frames;
            let now = Instant::now();
            this.timer.as_mut().reset(now.checked_add(*this.span).unwrap_or(now));
        }
    }
}
