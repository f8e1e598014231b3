//! The body of an answer on its way to a client, and what is known of its request, until its last byte.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use semel_http::ResponseBody;

use super::access_log::Entry;
use super::upstream::UpstreamBody;

/// The body of an answer on its way to a client.
pub(super) struct Answered {
    body: ResponseBody<UpstreamBody>,
    entry: Entry,
}

impl Answered {
    pub(super) fn new(body: ResponseBody<UpstreamBody>, mut entry: Entry) -> Self {
        if body.is_end_stream() {
            entry.ended();
        }
        Self { body, entry }
    }
}

impl Body for Answered {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(frame) = &polled
            && (frame.is_none() || self.body.is_end_stream())
        {
            self.entry.ended();
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
