//! Connections of HTTP/1.1 to the upstream, each driven by whoever waits for its answer; the idle ones, the freshest on top.

use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustix::net::RecvFlags;
use tokio::time::Instant;

use super::Sent;
use super::dial::Dialled;
use super::outgoing::Patience;
use super::send::Exchanged;
use crate::abandoned::Abandoned;

/// What is read ahead of whoever reads an answer, and the longest head that it may have. hyper would take 400 KiB, and as much
/// again for what it handed on.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// One connection of HTTP/1.1 to the upstream.
pub(super) struct Link {
    sender: SendRequest<Sent>,
    connection: Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>,
    /// The same socket again, to look at it without reading from it.
    socket: OwnedFd,
    ended: bool,
    idle_since: Instant,
}

impl Link {
    pub(super) async fn new(dialled: Dialled) -> hyper::Result<Self> {
        let (sender, connection) =
            Builder::new().max_buf_size(BUFFER_BYTES_MAX).handshake(TokioIo::new(dialled.wire)).await?;
        let connection = Box::pin(connection.with_upgrades());
        let idle_since = Instant::now();
        Ok(Self { sender, connection, socket: dialled.socket, ended: false, idle_since })
    }

    /// Sends a request and waits for the head of its answer. Dropping the future drops the connection.
    pub(super) async fn exchange(&mut self, request: Request<Sent>, patience: Patience) -> Exchanged {
        let mut patience = pin!(patience);
        let mut answer = pin!(self.sender.try_send_request(request));
        let connection = &mut self.connection;
        let ended = &mut self.ended;
        poll_fn(|cx| {
            if !*ended {
                *ended = connection.as_mut().poll(cx).is_ready();
            }
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer.into());
            }
            patience.as_mut().poll_over(cx).map(|()| Exchanged::TooSlow)
        })
        .await
    }

    /// Moves bytes. Ready once the connection has ended.
    pub(super) fn poll_drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.ended {
            self.ended = self.connection.as_mut().poll(cx).is_ready();
        }
        if self.ended { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether another request may go out on it, after its last answer has come to its end.
    pub(super) fn is_reusable(&mut self, cx: &mut Context<'_>) -> bool {
        // One more look lets the connection see that the answer is over.
        self.poll_drive(cx).is_pending() && self.sender.is_ready()
    }

    /// Whether the other side has closed it meanwhile, or sent bytes without a request: those would be taken for the
    /// answer to the next request. The runtime may not have heard of either yet, so the socket is asked.
    pub(super) fn is_dead(&self) -> bool {
        if self.ended || self.sender.is_closed() {
            return true;
        }
        let mut byte = [0_u8; 1];
        let peeked = rustix::net::recv(&self.socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        peeked.err() != Some(rustix::io::Errno::AGAIN)
    }
}

/// Connections of HTTP/1.1 that are idle.
pub(super) struct Pool {
    idle: Mutex<Vec<Link>>,
    idle_max: usize,
    idle_timeout: Duration,
    abandoned: Abandoned,
}

impl Pool {
    pub(super) fn new(idle_max: usize, idle_timeout: Duration, abandoned: Abandoned) -> Self {
        Self { idle: Mutex::default(), idle_max, idle_timeout, abandoned }
    }

    /// Where an answer goes that its client left.
    pub(super) fn abandoned(&self) -> &Abandoned {
        &self.abandoned
    }

    /// A connection that is still good, as far as this side can know.
    pub(super) fn take(&self) -> Option<Link> {
        loop {
            let link = self.links().pop()?;
            if link.idle_since.elapsed() >= self.idle_timeout {
                // Those below are older still.
                self.links().clear();
                return None;
            }
            if !link.is_dead() {
                return Some(link);
            }
        }
    }

    pub(super) fn put(&self, mut link: Link) {
        link.idle_since = Instant::now();
        let mut idle = self.links();
        if idle.len() < self.idle_max {
            idle.push(link);
        }
    }

    /// Closes what was idle for too long, or was closed by the other side.
    pub(super) fn tidy(&self) {
        let mut idle = self.links();
        let timeout = self.idle_timeout;
        let now = Instant::now();
        idle.retain(|link| now.duration_since(link.idle_since) < timeout && !link.is_dead());
    }

    fn links(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
