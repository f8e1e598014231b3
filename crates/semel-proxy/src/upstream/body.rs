//! The body of the upstream's answer. It carries its connection along, and gives it back at the end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use semel_http::ResponseBody;

use super::http1::{Link, Pool};
use crate::abandoned::is_without_client;
use crate::request::strip_response_trailers;
use semel_listen::{BodyError, Idle};

/// How long nothing may come of a body that its client left.
const LEFT_IDLE: Duration = Duration::from_secs(1);

/// The body of the upstream's answer.
pub struct UpstreamBody {
    source: Source,
    idle: Idle,
}

enum Source {
    /// Nothing, or nothing more.
    Empty,
    /// What the proxy says itself.
    Own(Box<ResponseBody<UpstreamBody>>),
    /// From a connection of HTTP/1.1, which nothing else drives. Without a pool it is closed at the end.
    Http1 { incoming: Incoming, link: Option<Link>, pool: Option<Arc<Pool>> },
    /// From a connection of HTTP/2, and how many bytes are still to come, if its head said so.
    Http2 { incoming: Incoming, left: Option<u64> },
}

impl UpstreamBody {
    /// No bytes.
    pub(crate) fn empty() -> Self {
        Self { source: Source::Empty, idle: Idle::new(Duration::ZERO) }
    }

    /// What the proxy says itself.
    pub(crate) fn own(body: ResponseBody<Self>) -> Self {
        Self { source: Source::Own(Box::new(body)), idle: Idle::new(Duration::ZERO) }
    }

    pub(super) fn http1(incoming: Incoming, link: Link, pool: Option<Arc<Pool>>, idle: Duration) -> Self {
        Self { source: Source::Http1 { incoming, link: Some(link), pool }, idle: Idle::new(idle) }
    }

    pub(super) fn http2(incoming: Incoming, idle: Duration) -> Self {
        let left = incoming.size_hint().exact();
        Self { source: Source::Http2 { incoming, left }, idle: Idle::new(idle) }
    }
}

impl Source {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self {
            Self::Empty => Poll::Ready(None),
            Self::Own(body) => Pin::new(body).poll_frame(cx),
            Self::Http1 { incoming, link, pool } => {
                let frame = poll_driven(incoming, link, cx);
                if let Poll::Ready(frame) = &frame
                    && (frame.is_none() || incoming.is_end_stream())
                {
                    give_back(link, pool.as_deref(), cx);
                }
                frame.map_err(BodyError::Broken)
            }
            Self::Http2 { incoming, left } => poll_whole(incoming, left, cx),
        }
    }
}

/// The next frame. Only if none is there yet does the connection move.
fn poll_driven(
    incoming: &mut Incoming,
    link: &mut Option<Link>,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    if let Poll::Ready(frame) = Pin::new(&mut *incoming).poll_frame(cx) {
        return Poll::Ready(frame);
    }
    let ended = link.as_mut().is_none_or(|link| link.poll_drive(cx).is_ready());
    if ended {
        *link = None;
    }
    Pin::new(incoming).poll_frame(cx)
}

/// The next frame of HTTP/2. hyper takes a reset with `NO_ERROR` for the end of a body; it is one only if the body was whole by
/// then, and otherwise half an answer would be kept as all of it.
fn poll_whole(
    incoming: &mut Incoming,
    left: &mut Option<u64>,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
    let frame = ready!(Pin::new(&mut *incoming).poll_frame(cx));
    if let (Some(Ok(frame)), Some(left)) = (&frame, left.as_mut()) {
        *left = left.saturating_sub(frame.data_ref().map_or(0, |data| data.len() as u64));
    }
    Poll::Ready(match frame {
        None if !incoming.is_end_stream() && *left != Some(0) => Some(Err(BodyError::Gone)),
        frame => frame.map(|frame| frame.map_err(BodyError::Broken)),
    })
}

fn give_back(link: &mut Option<Link>, pool: Option<&Pool>, cx: &mut Context<'_>) {
    if let (Some(mut link), Some(pool)) = (link.take(), pool)
        && link.is_reusable(cx)
    {
        pool.put(link);
    }
}

impl Drop for UpstreamBody {
    /// A body that was left before its end is read on for a moment, so that its connection can be used again.
    fn drop(&mut self) {
        let Source::Http1 { link: Some(_), pool: Some(pool), .. } = &self.source else { return };
        if is_without_client() {
            return;
        }
        if let Some(place) = pool.abandoned().place() {
            let source = std::mem::replace(&mut self.source, Source::Empty);
            place.go_on(std::future::ready(Self { source, idle: Idle::new(LEFT_IDLE) }));
        }
    }
}

fn without_forbidden_trailers(mut frame: Frame<Bytes>) -> Frame<Bytes> {
    if let Some(trailers) = frame.trailers_mut() {
        strip_response_trailers(trailers);
    }
    frame
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = self.source.poll_next(cx);
        let stalled = |span| Some(Err(BodyError::Stalled(span)));
        let polled = self.idle.bounded(polled, cx).map(|frame| frame.unwrap_or_else(stalled));
        polled.map_ok(without_forbidden_trailers)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Empty => true,
            Source::Own(body) => body.is_end_stream(),
            Source::Http1 { incoming, .. } | Source::Http2 { incoming, .. } => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Empty => SizeHint::with_exact(0),
            Source::Own(body) => body.size_hint(),
            Source::Http1 { incoming, .. } | Source::Http2 { incoming, .. } => incoming.size_hint(),
        }
    }
}
