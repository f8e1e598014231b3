//! The connection of HTTP/2 to the upstream, which all requests share.

use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use http::Request;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::Mutex;

use super::Sent;
use super::dial::Dial;
use super::outgoing::Patience;
use super::send::Exchanged;
use crate::abandoned::is_without_client;

/// How often an upstream that says nothing is asked whether it is there, while requests wait for it.
const PING_EVERY: Duration = Duration::from_secs(10);
/// How long it may take to say so.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// What is read ahead of a client that does not read its answer: every unread answer holds this much. As with HTTP/1.1, and
/// enough for 128 MB/s of one answer at half a millisecond to the upstream.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// No bound of its own: answers that are not read must not stop the others on the connection.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// The connection of HTTP/2 to the upstream.
#[derive(Default)]
pub(super) struct Multiplexed {
    // Held while connecting, so that a thousand requests make one connection.
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    connection: Option<Connection>,
    /// How many there were.
    made: u64,
}

/// One connection, shared.
#[derive(Clone)]
pub(super) struct Connection {
    sender: SendRequest<Sent>,
    number: u64,
}

impl Multiplexed {
    /// The connection that there is, or a new one.
    pub(super) async fn connected(&self, dial: &Dial) -> io::Result<Connection> {
        let mut current = self.current.lock().await;
        if let Some(connection) = current.connection.as_ref().filter(|there| !there.sender.is_closed()) {
            return Ok(connection.clone());
        }
        let sender = connect(dial).await?;
        current.made = current.made.saturating_add(1);
        let connection = Connection { sender, number: current.made };
        current.connection = Some(connection.clone());
        Ok(connection)
    }

    /// Sends nothing new on this connection: an answer did not come in time, and if the connection is why, no other would. What is
    /// under way on it goes on.
    pub(super) async fn retire(&self, connection: &Connection) {
        let mut current = self.current.lock().await;
        if current.connection.as_ref().is_some_and(|there| there.number == connection.number) {
            current.connection = None;
        }
    }
}

impl Connection {
    /// Sends a request and waits for the head of its answer.
    pub(super) async fn exchange(&mut self, request: Request<Sent>, patience: Patience) -> Exchanged {
        let mut patience = pin!(patience);
        let answer = self.sender.try_send_request(request);
        // A stream whose client left is reset at once: that costs the connection nothing.
        let mut has_left = false;
        let over = std::future::poll_fn(|cx| {
            let polled = patience.as_mut().poll_over(cx);
            has_left = is_without_client();
            if has_left { Poll::Ready(()) } else { polled }
        });
        tokio::select! {
            biased;
            answer = answer => answer.into(),
            () = over => if has_left { Exchanged::Abandoned } else { Exchanged::TooSlow },
        }
    }
}

async fn connect(dial: &Dial) -> io::Result<SendRequest<Sent>> {
    let dialled = dial.dial().await?;
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .handshake(TokioIo::new(dialled.wire))
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "semel: the upstream's connection ended");
        }
    });
    Ok(sender)
}
