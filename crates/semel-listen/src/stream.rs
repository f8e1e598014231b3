//! Streams: plain or secured, and the one to a client, which gives up a client that does not read, and ends so that its last
//! answer arrives.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use crate::body::Idle;

/// How long to go on reading after the last answer was written.
pub(crate) const LINGER: Duration = Duration::from_secs(2);
/// How much to read then. A client that sends more hears of its answer by a reset, or not at all.
const LINGER_BYTES_MAX: usize = 1 << 20;

/// A line to a peer.
pub enum PlainOrTls {
    /// As it is.
    Plain(TcpStream),
    /// Inside TLS.
    Secured(Box<TlsStream<TcpStream>>),
}

/// The same call on either.
macro_rules! on_either {
    ($either:expr, $stream:ident => $call:expr) => {
        match $either {
            PlainOrTls::Plain($stream) => $call,
            PlainOrTls::Secured($stream) => $call,
        }
    };
}

impl AsyncRead for PlainOrTls {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_either!(self.get_mut(), stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for PlainOrTls {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        on_either!(self.get_mut(), stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_either!(self.get_mut(), stream => Pin::new(stream).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        on_either!(self, stream => stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self.get_mut(), stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(cx))
    }
}

/// The line to a client.
pub struct ClientStream {
    wire: PlainOrTls,
    /// What was read to find out what the client speaks.
    first: Bytes,
    stalled: Idle,
    unwritten: Unwritten,
    linger: Linger,
}

/// Says of a connection whether its client has no room for bytes that wait to be written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unwritten(Arc<AtomicBool>);

impl Unwritten {
    pub(crate) fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Says of a connection, when it ends, that it waited for its next request: there is no answer that could be lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct AtRest(Arc<AtomicBool>);

impl AtRest {
    pub(crate) fn set(&self, is_at_rest: bool) {
        self.0.store(is_at_rest, Ordering::Relaxed);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Linger {
    shut: bool,
    /// Whether there is nothing to wait for.
    at_rest: AtRest,
    left: usize,
    idle: Idle,
}

impl ClientStream {
    /// A stream whose first bytes were read already.
    pub fn new(wire: PlainOrTls, first: Bytes, write_idle: Duration) -> Self {
        let linger = Linger {
            shut: false,
            at_rest: AtRest::default(),
            left: LINGER_BYTES_MAX,
            idle: Idle::new(LINGER),
        };
        Self { wire, first, stalled: Idle::new(write_idle), unwritten: Unwritten::default(), linger }
    }

    /// What says that the connection is at rest.
    pub(crate) fn at_rest(&self) -> AtRest {
        self.linger.at_rest.clone()
    }

    /// What says whether bytes wait to be written.
    pub(crate) fn unwritten(&self) -> Unwritten {
        self.unwritten.clone()
    }

    /// The wire below, for something else than HTTP: nothing of it was held back.
    pub fn into_wire(self) -> PlainOrTls {
        self.wire
    }

    /// What a write came to, or that the client has not read for too long.
    fn written<T>(&mut self, polled: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        self.unwritten.0.store(polled.is_pending(), Ordering::Relaxed);
        let stalled = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read"));
        self.stalled.bounded(polled, cx).map(|written| written.unwrap_or_else(stalled))
    }

    /// Reads and forgets what is still coming. A socket that is closed with bytes unread is reset, and a reset can
    /// overtake the answer.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0_u8; 4096];
        while self.linger.left > 0 {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.wire).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.linger.left = self.linger.left.saturating_sub(buffer.filled().len());
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.linger.idle.poll_waited(cx),
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.wire).poll_read(cx, buffer);
        }
        let length = self.first.len().min(buffer.remaining());
        let now = self.first.split_to(length);
        buffer.put_slice(now.chunk());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.wire).poll_write(cx, bytes);
        self.written(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.wire).poll_write_vectored(cx, slices);
        self.written(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.wire).poll_flush(cx);
        self.written(polled, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.linger.shut {
            let polled = Pin::new(&mut self.wire).poll_shutdown(cx);
            ready!(self.written(polled, cx))?;
            self.linger.shut = true;
            if self.linger.at_rest.get() {
                self.linger.left = 0;
            }
        }
        self.poll_linger(cx).map(Ok)
    }
}
