//! One connection of HTTP/1.1 to the upstream, driven by whoever waits for its answer.

use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustix::net::RecvFlags;
use tokio::time::Instant;

use super::Sent;
use super::dial::Dialled;
use super::patience::Patience;

/// One connection of HTTP/1.1 to the upstream.
pub(super) struct Link {
    sender: SendRequest<Sent>,
    connection: Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>,
    /// The same socket again, to look at it without reading from it.
    socket: OwnedFd,
    ended: bool,
    idle_since: Instant,
}

/// What is known of a request once its exchange is over.
pub(super) enum Exchanged {
    /// The head of an answer came.
    Answered(Response<Incoming>),
    /// Not one byte was written: it may go out on another connection.
    NeverLeft(Box<Request<Sent>>),
    /// It was written, at least in part, and no answer came.
    Lost(hyper::Error),
    /// It was written, at least in part, and no answer came in time.
    TooSlow,
}

impl Link {
    pub(super) async fn new(dialled: Dialled) -> hyper::Result<Self> {
        let (sender, connection) = Builder::new().handshake(TokioIo::new(dialled.wire)).await?;
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
                return Poll::Ready(match answer {
                    Ok(response) => Exchanged::Answered(response),
                    Err(mut error) => match error.take_message() {
                        Some(request) => Exchanged::NeverLeft(Box::new(request)),
                        None => Exchanged::Lost(error.into_error()),
                    },
                });
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

    /// Whether the other side has closed it meanwhile. The runtime may not have heard of that yet, so the socket is
    /// asked.
    pub(super) fn is_dead(&self) -> bool {
        if self.ended || self.sender.is_closed() {
            return true;
        }
        let mut byte = [0_u8; 1];
        match rustix::net::recv(&self.socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((0, _)) => true,
            // Bytes that nobody asked for: a secured line may have sent a ticket; anything else is not HTTP.
            Ok(_) => false,
            Err(error) => error != rustix::io::Errno::AGAIN,
        }
    }

    pub(super) fn idle_since(&self) -> Instant {
        self.idle_since
    }

    pub(super) fn now_idle(&mut self) {
        self.idle_since = Instant::now();
    }
}
