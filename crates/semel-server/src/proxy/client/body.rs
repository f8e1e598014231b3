//! The body of a client's request: it must keep coming.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::proxy::idle::Idle;
use crate::proxy::request::strip_trailers;

/// The body of a client's request.
#[derive(Debug)]
pub struct ClientBody {
    incoming: Incoming,
    idle: Idle,
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
    pub(in crate::proxy) fn new(incoming: Incoming, idle: Duration) -> Self {
        Self { incoming, idle: Idle::new(idle) }
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(frame) => {
                self.idle.progressed();
                Poll::Ready(frame.map(|frame| frame.map(admitted).map_err(BodyError::Broken)))
            }
            Poll::Pending => {
                let stalled = self.idle.poll_waited(cx);
                stalled.map(|()| Some(Err(BodyError::Stalled(self.idle.span()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// The frame, without what a trailer must not say.
fn admitted(mut frame: Frame<Bytes>) -> Frame<Bytes> {
    if let Some(trailers) = frame.trailers_mut() {
        strip_trailers(trailers);
    }
    frame
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
