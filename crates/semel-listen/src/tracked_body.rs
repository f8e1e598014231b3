//! The body of a response on its way to a client.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::connection_info::ConnectionInfo;
use crate::http_service::ServiceBody;
use crate::stalls::HandedOver;

/// The body of a response on its way to a client: it notes whether it is asked for more.
pub(crate) struct TrackedBody {
    body: ServiceBody,
    handed_over: Option<HandedOver>,
    /// Its connection is not idle before it is over.
    _connection: ConnectionInfo,
}

impl TrackedBody {
    pub(crate) fn new(body: ServiceBody, connection: ConnectionInfo) -> Self {
        Self { body, handed_over: connection.watch_answer(), _connection: connection }
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
