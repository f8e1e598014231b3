//! One connection of a client, from its first bytes, which tell its version of HTTP, to its end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsStream;

use crate::config::{Limits, Timeouts};
use crate::http_service::{ConnectionInfo, HttpService};
use crate::phase::{Phase, next, reached};
use crate::places::Place;
use crate::stalls::{Stalls, TrackedBody};
use crate::stream::{AtRest, ClientStream, LINGER, PlainOrTls, Unwritten};
use crate::tls::Certificate;

/// How often a client of HTTP/2 that says nothing is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(20);
/// How long it may take to say so.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a client of HTTP/2 without a request may take to answer that the connection ends. A client that waits for nothing
/// may be asleep, or gone without a word.
const GOODBYE: Duration = Duration::from_millis(500);
/// How often to look for answers that are not read, at most and at least.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(20);
const LOOK_EVERY_MAX: Duration = Duration::from_secs(5);
/// The smallest buffer that hyper works with.
const BUFFER_BYTES_MIN: usize = 8 << 10;
/// What is taken of an answer ahead of a client of HTTP/2 that has no room for it.
const SEND_BYTES_MAX: usize = 64 << 10;
/// What every connection of HTTP/2 starts with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What all connections have in common.
pub(crate) struct ConnectionConfig {
    pub(crate) service: Arc<dyn HttpService>,
    pub(crate) tls: Option<Certificate>,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) phase: watch::Receiver<Phase>,
}

impl ConnectionConfig {
    /// Serves one connection to its end, or until another one has its place.
    pub(crate) async fn serve(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, place: Place) {
        let eviction = place.eviction();
        tokio::select! {
            biased;
            () = self.serve_to_its_end(stream, peer, place) => {}
            () = eviction.happened() => {}
        }
    }

    async fn serve_to_its_end(&self, stream: TcpStream, peer: SocketAddr, place: Place) {
        let mut phase = self.phase.clone();
        let opened = tokio::select! {
            biased;
            opened = self.open(stream) => opened,
            // It has not asked for anything yet.
            () = reached(&mut phase, Phase::Draining) => return,
        };
        match opened {
            Ok(Some((Protocol::Http1, line))) => {
                self.serve_http1(line, ConnectionInfo::new(peer, place, None), phase).await;
            }
            Ok(Some((Protocol::NotHttp, line))) => refuse_preface(line).await,
            Ok(Some((Protocol::Http2, line))) => {
                let stalls = Stalls::new();
                let info = ConnectionInfo::new(peer, place, Some(Arc::clone(&stalls)));
                self.serve_http2(line, info, stalls, phase).await;
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "semel: a connection ended before its first request"),
        }
    }

    /// Secures the line if it is to be, and finds out what the client speaks.
    async fn open(&self, stream: TcpStream) -> io::Result<Option<(Protocol, TokioIo<ClientStream>)>> {
        stream.set_nodelay(true)?;
        let mut wire = self.secured(stream).await?;
        let Some((spoken, first)) = self.spoken(&mut wire).await? else { return Ok(None) };
        Ok(Some((spoken, TokioIo::new(ClientStream::new(wire, first, self.timeouts.body_idle)))))
    }

    async fn secured(&self, stream: TcpStream) -> io::Result<PlainOrTls> {
        let Some(tls) = &self.tls else { return Ok(PlainOrTls::Plain(stream)) };
        let stream =
            timeout(self.timeouts.handshake, tls.acceptor().accept(stream)).await.map_err(too_slow)??;
        Ok(PlainOrTls::Secured(Box::new(TlsStream::Server(stream))))
    }

    async fn spoken(&self, wire: &mut PlainOrTls) -> io::Result<Option<(Protocol, Bytes)>> {
        let mut agreed = None;
        if let PlainOrTls::Secured(stream) = wire {
            match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => agreed = Some(Protocol::Http2),
                Some(_) => return Ok(Some((Protocol::Http1, Bytes::new()))),
                None => {}
            }
        }
        let spoken = timeout(self.timeouts.head, first_bytes(wire)).await.map_err(too_slow)??;
        Ok(spoken.map(|(found, first)| match agreed {
            Some(agreed) if found != agreed => (Protocol::NotHttp, first),
            _ => (found, first),
        }))
    }

    async fn serve_http1(
        &self,
        line: TokioIo<ClientStream>,
        info: ConnectionInfo,
        mut phase: watch::Receiver<Phase>,
    ) {
        let ending = Ending::new(&line, &info);
        let service = service_fn(|request| self.answer(request, &info));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.timeouts.head)
            // A client that closes its side is taken for gone, as other proxies do: with half-closed ones served, hyper would
            // not see one that was killed before its answer is written, and its place would stay taken.
            .half_close(false)
            .max_header_size(self.limits.head_bytes_max)
            .max_buf_size(self.limits.head_bytes_max.max(BUFFER_BYTES_MIN))
            .serve_connection(line, service)
            .with_upgrades();
        let mut connection = pin!(connection);
        if *phase.borrow() == Phase::Leaving {
            info.leave();
        }
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => return told(ended),
                phase = next(&mut phase) => match phase {
                    Phase::Serving => {}
                    Phase::Leaving => info.leave(),
                    Phase::Draining => ending.begin(&info, || connection.as_mut().graceful_shutdown()),
                    Phase::Over => return,
                },
            }
        }
    }

    async fn serve_http2(
        &self,
        line: TokioIo<ClientStream>,
        info: ConnectionInfo,
        stalls: Arc<Stalls>,
        mut phase: watch::Receiver<Phase>,
    ) {
        let ending = Ending::new(&line, &info);
        let unwritten = line.inner().unwritten();
        let service = service_fn(|request| self.answer(request, &info));
        let head_bytes_max = u32::try_from(self.limits.head_bytes_max).unwrap_or(u32::MAX);
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.limits.streams_max)
            .max_header_list_size(head_bytes_max)
            .max_send_buf_size(SEND_BYTES_MAX)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .serve_connection(line, service);
        let mut connection = pin!(connection);
        let (mut idle, mut looks) =
            (pin!(idle(&info, ending.quiet, self.timeouts.head)), interval(self.look_every()));
        let mut silent = pin!(silent(&info, ending.quiet, unwritten, phase.clone()));
        let mut is_leaving = false;
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => return told(ended),
                phase = next(&mut phase) => match phase {
                    Phase::Serving | Phase::Leaving => {}
                    Phase::Draining => ending.begin(&info, || connection.as_mut().graceful_shutdown()),
                    Phase::Over => return,
                },
                () = silent.as_mut() => return,
                () = idle.as_mut(), if !is_leaving => {
                    is_leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
                _ = looks.tick() => if stalls.is_any_older_than(self.timeouts.body_idle) {
                    return;
                },
            }
        }
    }

    /// One response. Its connection is not idle until the last byte of it.
    fn answer(
        &self,
        request: Request<Incoming>,
        connection: &ConnectionInfo,
    ) -> impl Future<Output = Result<Response<TrackedBody>, Infallible>> + Send + use<> {
        connection.count_request();
        let connection = connection.clone();
        let answered = Arc::clone(&self.service).call(request, connection.clone());
        async move {
            let mut response = answered.await;
            if connection.is_leaving() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| TrackedBody::new(body, connection)))
        }
    }

    /// How often to look for answers that are not read.
    fn look_every(&self) -> Duration {
        self.timeouts.body_idle.div_f64(4.0).clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX)
    }
}

/// How a connection ends when the process drains.
struct Ending {
    at_rest: AtRest,
    /// Holders of a connection without a request.
    quiet: usize,
}

impl Ending {
    fn new(line: &TokioIo<ClientStream>, info: &ConnectionInfo) -> Self {
        Self { at_rest: line.inner().at_rest(), quiet: info.activity().1 }
    }

    /// Lets the request that runs finish. Without one, the connection ends at once: nothing can be lost.
    fn begin(&self, info: &ConnectionInfo, graceful_shutdown: impl FnOnce()) {
        self.at_rest.set(info.activity().1 <= self.quiet);
        graceful_shutdown();
    }
}

/// Waits until a connection has been without a request for a whole span. Without one, it has `quiet` holders.
async fn idle(info: &ConnectionInfo, quiet: usize, span: Duration) {
    let (mut before, _) = info.activity();
    loop {
        sleep(span).await;
        let (requests, holders) = info.activity();
        if requests == before && holders <= quiet {
            return;
        }
        before = requests;
    }
}

/// Waits, once the process drains, until nothing is in flight on a connection, no answer can still be on its way out, and the
/// client has not said goodbye in time.
async fn silent(
    info: &ConnectionInfo,
    quiet: usize,
    unwritten: Unwritten,
    mut phase: watch::Receiver<Phase>,
) {
    reached(&mut phase, Phase::Draining).await;
    loop {
        idle(info, quiet, GOODBYE).await;
        if !unwritten.is_any() && info.since_last_answer().is_none_or(|since| since >= LINGER) {
            return;
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

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
    /// Neither: what came is no request, and not what HTTP/2 starts with.
    NotHttp,
}

/// How many of a client's first bytes are looked at: the preface of HTTP/2, or a short line that is none of HTTP/1.
const FIRST_BYTES_MAX: usize = 64;

/// Reads until it is clear what the client speaks; what was read must be read again by whoever speaks it. `None` if
/// the client left without a word.
async fn first_bytes(wire: &mut PlainOrTls) -> io::Result<Option<(Protocol, Bytes)>> {
    let mut bytes = [0_u8; FIRST_BYTES_MAX];
    let mut length = 0_usize;
    loop {
        let read = wire.read(bytes.get_mut(length..).unwrap_or_default()).await?;
        if read == 0 && length == 0 {
            return Ok(None);
        }
        length = length.saturating_add(read);
        let so_far = bytes.get(..length).unwrap_or_default();
        if let Some(spoken) = protocol_of(so_far).or((read == 0).then_some(Protocol::Http1)) {
            return Ok(Some((spoken, Bytes::copy_from_slice(so_far))));
        }
    }
}

/// What these first bytes are of; `None` if that takes more of them.
fn protocol_of(bytes: &[u8]) -> Option<Protocol> {
    if bytes.starts_with(PREFACE) {
        return Some(Protocol::Http2);
    }
    if PREFACE.starts_with(bytes) {
        return None;
    }
    // No method of HTTP/1 is called so: a client that began like this and went on otherwise meant HTTP/2.
    let is_preface_gone_wrong = bytes.starts_with(b"PRI ");
    let is_http = !is_preface_gone_wrong && !is_line_of_something_else(bytes);
    Some(if is_http { Protocol::Http1 } else { Protocol::NotHttp })
}

/// Whether these bytes hold a whole line of three words of which neither the target nor the version can be of HTTP/1. A request
/// that is only malformed gets an answer that its client can read.
fn is_line_of_something_else(bytes: &[u8]) -> bool {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return false };
    let line = bytes.get(..end).unwrap_or_default().trim_ascii_end();
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(_), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return false;
    };
    let is_target = target.iter().any(|byte| matches!(byte, b'/' | b'*' | b':'));
    !is_target && !version.starts_with(b"HTTP/")
}

/// Ends a connection that began with something else than HTTP, as RFC 9113, 3.4 has it: `GOAWAY` with `PROTOCOL_ERROR`, after
/// the empty `SETTINGS` that a server's side must begin with.
async fn refuse_preface(line: TokioIo<ClientStream>) {
    const SETTINGS_AND_GOAWAY: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
    let mut line = line.into_inner();
    let refused = async {
        line.write_all(SETTINGS_AND_GOAWAY).await?;
        line.shutdown().await
    };
    if let Err(error) = refused.await {
        tracing::debug!(%error, "semel: a client that speaks no HTTP left early");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_what_a_client_speaks() {
        for (bytes, spoken) in [
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(Protocol::Http2)),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore", Some(Protocol::Http2)),
            ("P", None),
            ("PRI * HT", None),
            ("PRI * HTTP/2.0\r\n\r\nXX", Some(Protocol::NotHttp)),
            ("PRI / HTTP/1.1\r\n", Some(Protocol::NotHttp)),
            ("INVALID CONNECTION PREFACE\r\n\r\n", Some(Protocol::NotHttp)),
            ("POST / HTTP/1.1\r\n", Some(Protocol::Http1)),
            ("GET / FOO\r\n", Some(Protocol::Http1)),
            ("GET  / HTTP/1.1\r\n", Some(Protocol::Http1)),
            ("CONNECT a:443 HTTP/1.1\r\n", Some(Protocol::Http1)),
            ("\r\nGET / HTTP/1.1\r\n", Some(Protocol::Http1)),
            ("INVALID CONNECTION PREF", Some(Protocol::Http1)),
        ] {
            assert_eq!(protocol_of(bytes.as_bytes()), spoken, "{bytes:?}");
        }
    }
}
