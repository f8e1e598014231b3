//! Bodies: what the service behind the layer reads, and what clients read.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::body_buffer::BodyBuffer;
use crate::budget::{NoRoom, Reserved};

pin_project! {
    /// What the service behind the layer reads: the client's body as it comes, or the bytes that were read from it.
    pub struct RequestBody<B> {
        #[pin]
        kind: Request<B>,
    }
}

pin_project! {
    #[project = RequestProjected]
    enum Request<B> {
        Streaming { #[pin] body: B },
        Whole { whole: Whole },
    }
}

pin_project! {
    /// What clients read: the service's body as it comes, or bytes that were kept, or the first part of a body that
    /// turned out too long to be kept, and then the rest as it comes.
    pub struct ResponseBody<R> {
        #[pin]
        kind: Response<R>,
    }
}

pin_project! {
    #[project = ResponseProjected]
    enum Response<R> {
        Streaming { #[pin] body: R },
        Whole { whole: Whole },
        Continued { first: std::vec::IntoIter<Bytes>, rest: Pin<Box<R>> },
    }
}

/// A body that was read to its end.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    pub(crate) bytes: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
    /// The room that the bytes take. It goes with them to the connection.
    pub(crate) reserved: Reserved,
}

impl Whole {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, ..Self::default() }
    }

    fn next(&mut self) -> Option<Frame<Bytes>> {
        if self.bytes.is_empty() {
            return self.trailers.take().map(Frame::trailers);
        }
        let (bytes, reserved) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.reserved));
        Some(Frame::data(reserved.attach(bytes)))
    }

    fn is_at_its_end(&self) -> bool {
        self.bytes.is_empty() && self.trailers.is_none()
    }

    fn size(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

/// What came of reading a body up to a bound.
pub(crate) enum Read<E> {
    /// All of it.
    Whole(Whole),
    /// It is longer; this is what was read.
    TooLong(Vec<Bytes>),
    /// There is no room for it now; this is what was read.
    NoRoom(NoRoom, Vec<Bytes>),
    /// It broke off.
    Broken(E),
}

/// Reads a body up to `bytes_max`, into room that `reserved` has.
pub(crate) async fn read<B>(mut body: Pin<&mut B>, bytes_max: usize, reserved: Reserved) -> Read<B::Error>
where
    B: Body<Data = Bytes>,
{
    let (mut buffer, mut trailers) = (BodyBuffer::new(reserved), None);
    if body.size_hint().lower() > bytes_max as u64 {
        return Read::TooLong(Vec::new());
    }
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Read::Broken(error),
        };
        match frame.into_data() {
            Ok(data) => {
                let taken = buffer.push(data).await;
                if buffer.len() > bytes_max {
                    return Read::TooLong(buffer.into_pieces());
                }
                if let Err(full) = taken {
                    return Read::NoRoom(full, buffer.into_pieces());
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    let (bytes, reserved) = buffer.into_whole();
    Read::Whole(Whole { bytes, trailers, reserved })
}

impl<B> RequestBody<B> {
    /// No bytes: for a request that does not come from a client.
    pub fn empty() -> Self {
        Self::whole(Whole::default())
    }

    pub(crate) fn streaming(body: B) -> Self {
        Self { kind: Request::Streaming { body } }
    }

    pub(crate) fn whole(whole: Whole) -> Self {
        Self { kind: Request::Whole { whole } }
    }
}

impl<R> ResponseBody<R> {
    /// All of its bytes, if they are here.
    pub(crate) fn whole_bytes(&self) -> Option<&Bytes> {
        match &self.kind {
            Response::Whole { whole } => Some(&whole.bytes),
            Response::Streaming { .. } | Response::Continued { .. } => None,
        }
    }

    pub(crate) fn streaming(body: R) -> Self {
        Self { kind: Response::Streaming { body } }
    }

    pub(crate) fn whole(whole: Whole) -> Self {
        Self { kind: Response::Whole { whole } }
    }

    pub(crate) fn continued(first: Vec<Bytes>, rest: Pin<Box<R>>) -> Self {
        Self { kind: Response::Continued { first: first.into_iter(), rest } }
    }
}

impl<B: Body<Data = Bytes>> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            RequestProjected::Streaming { body } => body.poll_frame(context),
            RequestProjected::Whole { whole } => Poll::Ready(whole.next().map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Request::Streaming { body } => body.is_end_stream(),
            Request::Whole { whole } => whole.is_at_its_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Request::Streaming { body } => body.size_hint(),
            Request::Whole { whole } => whole.size(),
        }
    }
}

impl<R: Body<Data = Bytes>> Body for ResponseBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        match self.project().kind.project() {
            ResponseProjected::Streaming { body } => body.poll_frame(context),
            ResponseProjected::Whole { whole } => Poll::Ready(whole.next().map(Ok)),
            ResponseProjected::Continued { first, rest } => match first.next() {
                Some(part) => Poll::Ready(Some(Ok(Frame::data(part)))),
                None => rest.as_mut().poll_frame(context),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Response::Streaming { body } => body.is_end_stream(),
            Response::Whole { whole } => whole.is_at_its_end(),
            Response::Continued { first, rest } => first.len() == 0 && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Response::Streaming { body } => body.size_hint(),
            Response::Whole { whole } => whole.size(),
            Response::Continued { first, rest } => {
                let waiting = first.as_slice().iter().map(|part| part.len() as u64).sum::<u64>();
                let mut hint = rest.size_hint();
                let upper = hint.upper().and_then(|upper| upper.checked_add(waiting));
                let lower = hint.lower().saturating_add(waiting);
                hint = SizeHint::new();
                hint.set_lower(lower);
                if let Some(upper) = upper {
                    hint.set_upper(upper);
                }
                hint
            }
        }
    }
}

impl<R> Default for ResponseBody<R> {
    fn default() -> Self {
        Self::whole(Whole::default())
    }
}
