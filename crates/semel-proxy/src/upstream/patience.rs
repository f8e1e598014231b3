//! How long the head of an answer may take.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep};

use super::outgoing::Progress;

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
