//! The body of an answer on its way to a client.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::stalls::HandedOver;
use super::visit::Visit;

/// The body of an answer on its way to a client: it notes whether it is asked for more.
#[derive(Debug)]
pub(crate) struct Carried<B> {
    body: B,
    handed_over: Option<HandedOver>,
    /// Its connection is not idle before it is over.
    _visit: Visit,
}

impl<B> Carried<B> {
    pub(crate) fn new(body: B, visit: Visit) -> Self {
        Self { body, handed_over: visit.watch_answer(), _visit: visit }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Carried<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
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
