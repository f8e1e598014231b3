//! The body of a client's request: it must keep coming, or it is given up.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

/// The body of a client's request.
#[derive(Debug)]
pub struct ClientBody {
    incoming: Incoming,
    idle: Idle,
    /// For all of it, if there is such a bound.
    whole: Option<Idle>,
    /// Takes out what a trailer must not say.
    strip_trailers: fn(&mut HeaderMap),
}

/// Why a body did not come to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// It broke off, or its framing is wrong.
    Broken(hyper::Error),
    /// Nothing came for this long.
    Stalled(Duration),
    /// The connection that it came on is gone.
    Gone,
}

impl ClientBody {
    /// A body that must keep coming: `idle` is how long nothing may come.
    pub fn new(incoming: Incoming, idle: Duration, strip_trailers: fn(&mut HeaderMap)) -> Self {
        Self { incoming, idle: Idle::new(idle), whole: None, strip_trailers }
    }

    /// The same, if all of it comes within a span from the first wait for it on.
    #[must_use]
    pub fn within(mut self, span: Duration) -> Self {
        self.whole = Some(Idle::new(span));
        self
    }

    /// The frame, without what a trailer must not say.
    fn admitted(&self, mut frame: Frame<Bytes>) -> Frame<Bytes> {
        if let Some(trailers) = frame.trailers_mut() {
            (self.strip_trailers)(trailers);
        }
        frame
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        let polled = match (self.idle.bounded(polled, cx), &mut self.whole) {
            (Poll::Pending, Some(whole)) => whole.poll_waited(cx).map(|()| Err(whole.span)),
            (polled, _) => polled,
        };
        polled.map(|came| match came {
            Ok(frame) => {
                frame.map(|frame| frame.map(|frame| self.admitted(frame)).map_err(BodyError::Broken))
            }
            Err(span) => Some(Err(BodyError::Stalled(span))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(_) => f.write_str("the body broke off"),
            Self::Stalled(span) => write!(f, "nothing of the body came for {span:?}"),
            Self::Gone => f.write_str("the connection ended before the body did"),
        }
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Broken(error) => Some(error),
            Self::Stalled(_) | Self::Gone => None,
        }
    }
}

/// A timer that runs only while nothing happens. It costs nothing until the first wait.
#[derive(Debug)]
pub struct Idle {
    span: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    running: bool,
}

impl Idle {
    /// Waits for this long at most.
    pub fn new(span: Duration) -> Self {
        Self { span, timer: None, running: false }
    }

    /// What was polled, or the span once nothing has come for all of it.
    pub fn bounded<T>(&mut self, polled: Poll<T>, cx: &mut Context<'_>) -> Poll<Result<T, Duration>> {
        match polled {
            Poll::Ready(value) => {
                self.running = false;
                Poll::Ready(Ok(value))
            }
            Poll::Pending => self.poll_waited(cx).map(|()| Err(self.span)),
        }
    }

    /// Nothing happens yet: ready once that has been so for the whole span.
    pub(crate) fn poll_waited(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let span = self.span;
        let timer = self.timer.get_or_insert_with(|| {
            self.running = true;
            Box::pin(tokio::time::sleep(span))
        });
        if !self.running {
            self.running = true;
            let now = Instant::now();
            timer.as_mut().reset(now.checked_add(span).unwrap_or(now));
        }
        timer.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests;
