//! A connection that became something else than HTTP: a websocket, say. Bytes go both ways until both sides are done.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{Extensions, HeaderMap, HeaderValue, Version};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf, copy_bidirectional};
use tokio::sync::watch;

use semel_listen::{ClientStream, ConnectionInfo, OneInFlight, Phase, PlainOrTls, phase};

/// What a client wants its connection to become.
pub(super) struct Wanted {
    client: OnUpgrade,
    protocol: HeaderValue,
    visit: Option<ConnectionInfo>,
}

/// What a tunnel holds while it lasts, and when it ends.
pub(super) struct Lasting {
    pub(super) in_flight: OneInFlight,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) idle: Duration,
}

impl Wanted {
    /// What a request wants, if it wants anything that may be passed on. `h2c` may not: it would carry requests past the
    /// layer.
    pub(super) fn of(version: Version, headers: &HeaderMap, extensions: &mut Extensions) -> Option<Self> {
        let protocol = headers.get(UPGRADE)?.clone();
        let names =
            headers.get_all(CONNECTION).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        let is_meant = names.into_iter().any(|name| name.trim_ascii().eq_ignore_ascii_case(b"upgrade"));
        let is_http = protocol.as_bytes().to_ascii_lowercase().windows(3).any(|word| word == b"h2c");
        if version != Version::HTTP_11 || !is_meant || is_http {
            return None;
        }
        let client = extensions.remove::<OnUpgrade>()?;
        Some(Self { client, protocol, visit: extensions.remove() })
    }

    /// Says to the upstream what is wanted.
    pub(super) fn ask(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, self.protocol.clone());
    }

    /// Carries bytes both ways from now on, in a task of its own.
    pub(super) fn carry(self, upstream: OnUpgrade, lasting: Lasting) {
        tokio::spawn(async move {
            let Ok((client, upstream)) = tokio::try_join!(self.client, upstream) else { return };
            if let Err(error) = joined(client, upstream, lasting).await {
                tracing::debug!(%error, "semel: an upgraded connection ended early");
            }
            drop(self.visit);
        });
    }
}

async fn joined(client: Upgraded, upstream: Upgraded, lasting: Lasting) -> io::Result<()> {
    let Lasting { in_flight, mut phase, idle } = lasting;
    let opaque = |_| io::Error::other("an upgraded connection is not what it was");
    let client = client.downcast::<TokioIo<ClientStream>>().map_err(opaque)?;
    let upstream = upstream.downcast::<TokioIo<PlainOrTls>>().map_err(opaque)?;
    let moved = Arc::new(AtomicU64::new(0));
    let mut to_upstream = Counted { wire: upstream.io.into_inner(), moved: Arc::clone(&moved) };
    let mut to_client = Counted { wire: client.io.into_inner().into_wire(), moved: Arc::clone(&moved) };
    first(&mut to_upstream, client.read_buf).await?;
    first(&mut to_client, upstream.read_buf).await?;
    tokio::select! {
        copied = copy_bidirectional(&mut to_client, &mut to_upstream) => copied.map(drop)?,
        () = idle_for(idle, &moved) => {}
        () = phase::reached(&mut phase, Phase::Over) => {}
    }
    drop(in_flight);
    Ok(())
}

/// What was read before the connection became another belongs to the other side.
async fn first(to: &mut Counted, bytes: Bytes) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    to.write_all(&bytes).await
}

/// Waits until nothing has moved for a whole span.
async fn idle_for(span: Duration, moved: &AtomicU64) {
    let mut before = moved.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(span).await;
        let now = moved.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
    }
}

/// A wire that counts what was read from it.
struct Counted {
    wire: PlainOrTls,
    moved: Arc<AtomicU64>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.wire).poll_read(cx, buffer))?;
        self.moved.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(cx)
    }
}
