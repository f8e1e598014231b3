//! One connection of a client, from its first byte to its end.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsStream};

use super::first_bytes::{self, Spoken};
use super::line::Line;
use super::peers::Place;
use crate::proxy::front::Front;
use crate::proxy::phase::{Phase, next, no_longer_serving};
use crate::proxy::settings::{Bounds, Timeouts};
use crate::proxy::wire::Wire;

/// How often a client of HTTP/2 that says nothing is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(20);
/// How long it may take to say so.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// The smallest buffer that hyper works with.
const BUFFER_BYTES_MIN: usize = 8 << 10;

/// What all connections have in common.
pub(super) struct Manner {
    pub(super) front: Arc<Front>,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) bounds: Bounds,
    pub(super) timeouts: Timeouts,
    pub(super) phase: watch::Receiver<Phase>,
}

impl Manner {
    /// Serves one connection to its end.
    pub(super) async fn serve(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, place: Arc<Place>) {
        let mut phase = self.phase.clone();
        let opened = tokio::select! {
            biased;
            opened = self.open(stream) => opened,
            // It has not asked for anything yet.
            () = no_longer_serving(&mut phase) => return,
        };
        match opened {
            Ok(Some((Spoken::Http1, line))) => self.serve_http1(line, peer, place, phase).await,
            Ok(Some((Spoken::Http2, line))) => self.serve_http2(line, peer, place, phase).await,
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "semel: a connection ended before its first request"),
        }
    }

    /// Secures the line if it is to be, and finds out what the client speaks.
    async fn open(&self, stream: TcpStream) -> io::Result<Option<(Spoken, TokioIo<Line>)>> {
        stream.set_nodelay(true)?;
        let mut wire = self.secured(stream).await?;
        let Some((spoken, first)) = self.spoken(&mut wire).await? else { return Ok(None) };
        Ok(Some((spoken, TokioIo::new(Line::new(wire, first, self.timeouts.body_idle)))))
    }

    async fn secured(&self, stream: TcpStream) -> io::Result<Wire> {
        let Some(tls) = &self.tls else { return Ok(Wire::Plain(stream)) };
        let stream = timeout(self.timeouts.handshake, tls.accept(stream)).await.map_err(too_slow)??;
        Ok(Wire::Secured(Box::new(TlsStream::Server(stream))))
    }

    async fn spoken(&self, wire: &mut Wire) -> io::Result<Option<(Spoken, Bytes)>> {
        if let Wire::Secured(stream) = wire {
            match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => return Ok(Some((Spoken::Http2, Bytes::new()))),
                Some(_) => return Ok(Some((Spoken::Http1, Bytes::new()))),
                None => {}
            }
        }
        timeout(self.timeouts.head, first_bytes::read(wire)).await.map_err(too_slow)?
    }

    async fn serve_http1(
        &self,
        line: TokioIo<Line>,
        peer: SocketAddr,
        place: Arc<Place>,
        mut phase: watch::Receiver<Phase>,
    ) {
        let service = service_fn(|request| Arc::clone(&self.front).answer(request, peer, Arc::clone(&place)));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.timeouts.head)
            .half_close(true)
            .max_header_size(self.bounds.head_bytes_max)
            .max_buf_size(self.bounds.head_bytes_max.max(BUFFER_BYTES_MIN))
            .serve_connection(line, service)
            .with_upgrades();
        let mut connection = pin!(connection);
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => return told(ended),
                phase = next(&mut phase) => match phase {
                    Phase::Serving | Phase::Draining => connection.as_mut().graceful_shutdown(),
                    Phase::Over => return,
                },
            }
        }
    }

    async fn serve_http2(
        &self,
        line: TokioIo<Line>,
        peer: SocketAddr,
        place: Arc<Place>,
        mut phase: watch::Receiver<Phase>,
    ) {
        let front = Arc::clone(&self.front);
        let service = service_fn(move |request| Arc::clone(&front).answer(request, peer, Arc::clone(&place)));
        let head_bytes_max = u32::try_from(self.bounds.head_bytes_max).unwrap_or(u32::MAX);
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.bounds.streams_max)
            .max_header_list_size(head_bytes_max)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .serve_connection(line, service);
        let mut connection = pin!(connection);
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => return told(ended),
                phase = next(&mut phase) => match phase {
                    Phase::Serving | Phase::Draining => connection.as_mut().graceful_shutdown(),
                    Phase::Over => return,
                },
            }
        }
    }
}

fn told(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "semel: a client's connection ended early");
    }
}

fn too_slow(_: tokio::time::error::Elapsed) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client did not say in time what it speaks")
}
