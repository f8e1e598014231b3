//! HTTP/2 on either side.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use semel_proxy::UpstreamVersion;
use test_http::frames::{self, Frame};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::certificate::{self, certificate};
use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;

pub(crate) async fn connect(address: std::net::SocketAddr) -> http2::SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.expect("connects");
    let (sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("speaks HTTP/2");
    tokio::spawn(connection);
    sender
}

pub(crate) fn post(path: &str, body: &str) -> Request<Full<Bytes>> {
    Request::post(format!("http://shop.test{path}")).body(Full::from(body.to_owned())).expect("is a request")
}

async fn text(response: http::Response<hyper::body::Incoming>) -> String {
    let bytes = response.into_body().collect().await.expect("is whole").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("is text")
}

#[tokio::test]
async fn many_requests_at_once_come_over_one_connection() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    let sender = connect(proxy.listening()).await;
    let all = (0..50).map(|n| {
        let mut sender = sender.clone();
        tokio::spawn(async move {
            let response = sender.send_request(post(&format!("/{n}"), "hi")).await.expect("is answered");
            (n, text(response).await)
        })
    });
    for one in all.collect::<Vec<_>>() {
        let (n, seen) = one.await.expect("ends");
        assert!(seen.starts_with(&format!("POST /{n} HTTP/1.1\n")), "{seen}");
        assert!(seen.contains("host: shop.test\n") && seen.ends_with("\n\nhi"), "{seen}");
    }
}

#[tokio::test]
async fn a_cookie_that_comes_in_crumbs_reaches_the_upstream_as_one_line() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    let mut request = post("/", "");
    for crumb in ["a=1", "b=2; c=3", "d=4"] {
        request.headers_mut().append("cookie", crumb.parse().expect("is a value"));
    }
    let seen = text(connect(proxy.listening()).await.send_request(request).await.expect("is answered")).await;
    let cookies: Vec<_> = seen.lines().filter(|line| line.starts_with("cookie")).collect();
    assert_eq!(cookies, ["cookie: a=1; b=2; c=3; d=4"]);
}

#[tokio::test]
async fn a_connection_that_begins_like_http2_and_is_not_ends_with_goaway() {
    let service = Service::mirror().await;
    let (_folder, tls) = certificate();
    let mut secured = settings(service.address);
    secured.listener.tls = Some(tls.clone());
    let (plain, secured) = (start(settings(service.address)).await, start(secured).await);
    for first in ["INVALID CONNECTION PREFACE\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"] {
        let mut stream = TcpStream::connect(plain.listening()).await.expect("connects");
        went_away(&mut stream, first).await;
        let mut stream = certificate::connect(secured.listening(), &tls, b"h2").await.expect("is secured");
        went_away(&mut stream, first).await;
    }
}

/// The answer to these bytes is what a server begins with, and `GOAWAY` with `PROTOCOL_ERROR`.
async fn went_away(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), first: &str) {
    stream.write_all(first.as_bytes()).await.expect("is written");
    let settings = Frame::read(stream).await.expect("comes");
    assert!(settings.is(frames::SETTINGS, 0), "{first:?}: {settings:?}");
    let end = Frame::read(stream).await.expect("comes");
    assert!(end.is(frames::GOAWAY, 0) && end.reason() == Some(1), "{first:?}: {end:?}");
    assert_eq!(Frame::read(stream).await, None, "{first:?}");
}

/// How many connections to the upstream the metrics say that there were.
async fn counted(admin: std::net::SocketAddr) -> usize {
    let scraped = Client::connect(admin).await.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let mut lines = scraped.text().lines();
    let count = lines.find_map(|line| line.strip_prefix("semel_http_upstream_connects_total "));
    count.and_then(|count| count.parse().ok()).expect("is counted")
}

/// An upstream that answers each request in its time: the count of its connections is what resets cost.
async fn resets(count: u32, never_answers: bool) -> (usize, Vec<Option<u32>>) {
    let service = Service::scripted(move |mut line| async move {
        while !line.head().await.is_empty() {
            if never_answers {
                return std::future::pending().await;
            }
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        }
    })
    .await;
    let mut settings = settings(service.address);
    settings.admin = Some("127.0.0.1:0".parse().expect("is an address"));
    let proxy = start(settings).await;
    let mut stream = TcpStream::connect(proxy.listening()).await.expect("connects");
    stream.set_nodelay(true).expect("is set");
    stream
        .write_all(&[frames::PREFACE.as_slice(), &frames::frame(frames::SETTINGS, 0, 0, &[])].concat())
        .await
        .expect("is written");
    let get = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")];
    for stream_id in (1..).step_by(2).take(count as usize) {
        let opened = frames::headers(stream_id, &get, frames::END_STREAM);
        stream.write_all(&opened).await.expect("is written");
        // The reset must come while the request is under way, not with it: so the proxy is heard of in between.
        stream.write_all(&frames::frame(frames::PING, 0, 0, &[0; 8])).await.expect("is written");
        while Frame::read(&mut stream).await.expect("the connection stays").kind != frames::PING {}
        stream.write_all(&frames::reset(stream_id, frames::CANCEL)).await.expect("is written");
    }
    let last = count * 2 + 1;
    stream.write_all(&frames::headers(last, &get, frames::END_STREAM)).await.expect("is written");
    let mut statuses = Vec::new();
    if !never_answers {
        while let Some(frame) = Frame::read(&mut stream).await {
            if frame.is(frames::HEADERS, last) {
                statuses.push(frame.payload.first().map(|byte| u32::from(*byte)));
                break;
            }
            assert_ne!(frame.kind, frames::GOAWAY, "the connection stays");
        }
    }
    let admin = proxy.admin().expect("listens");
    // The last ones may still be on their way.
    for _ in 0..1_000 {
        if counted(admin).await == service.connections() {
            return (service.connections(), statuses);
        }
    }
    panic!("the metric says {}, and there were {}", counted(admin).await, service.connections());
}

#[tokio::test]
async fn requests_that_are_reset_do_not_each_cost_the_upstream_a_connection() {
    let (connections, answered) = resets(500, false).await;
    assert!(connections < 60, "{connections} connections for 500 resets");
    assert_eq!(answered.len(), 1, "and the connection still serves");
}

#[tokio::test]
async fn resets_of_requests_that_the_upstream_does_not_answer_are_bounded() {
    let started_at = tokio::time::Instant::now();
    let (connections, _) = resets(1_000, true).await;
    // What one client gives up is bounded by the second: 128 in each, the first and the last included.
    let seconds = usize::try_from(started_at.elapsed().as_secs()).expect("is short") + 2;
    assert!(connections <= 130 * seconds, "{connections} in {seconds} s");
}

#[tokio::test]
async fn an_upstream_is_spoken_to_in_http2_if_so_told() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.upstream_version = UpstreamVersion::Http2;
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    let request = "POST /a?b=c HTTP/1.1\r\nHost: shop.test\r\nContent-Length: 2\r\n\r\nhi";
    let seen = client.ask(request).await;
    assert!(seen.text().starts_with("POST http://shop.test/a?b=c HTTP/2.0\n"), "{}", seen.text());
    assert!(seen.text().ends_with("\n\nhi"), "{}", seen.text());
    let mut sender = connect(proxy.listening()).await;
    let seen = text(sender.send_request(post("/both", "hi")).await.expect("is answered")).await;
    assert!(seen.starts_with("POST http://shop.test/both HTTP/2.0\n"), "{seen}");
}

#[tokio::test]
async fn an_upstream_of_http2_that_is_gone_is_unreachable() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.upstream_version = UpstreamVersion::Http2;
    drop(service);
    let proxy = start(settings).await;
    let answer = Client::connect(proxy.listening()).await.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer.status, 502, "{}", answer.text());
}

/// An upstream of HTTP/2 that answers its first request with these frames and leaves, and every other one with 200.
async fn answering_first(frames: &'static [Vec<u8>]) -> Service {
    let asked = Arc::new(AtomicUsize::new(0));
    Service::scripted(move |mut line| {
        let asked = Arc::clone(&asked);
        async move {
            frames::accept(&mut line.0).await.expect("the proxy connects");
            while let Some(stream) = frames::next_request(&mut line.0).await {
                if asked.fetch_add(1, Ordering::SeqCst) == 0 {
                    line.write(frames.concat()).await;
                    return;
                }
                line.write(frames::headers(stream, &[(":status", "200")], frames::END_STREAM)).await;
            }
        }
    })
    .await
}

const KEYED: &str =
    "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: t\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\nhi";

#[tokio::test]
async fn a_request_that_the_upstream_says_it_did_nothing_with_is_released() {
    for frames in [
        vec![frames::reset(1, frames::REFUSED_STREAM)],
        vec![frames::go_away(0, frames::NO_ERROR)],
        vec![frames::go_away(0, frames::INTERNAL_ERROR)],
        vec![frames::go_away(i32::MAX as u32, frames::NO_ERROR), frames::go_away(0, frames::NO_ERROR)],
    ] {
        let service = answering_first(frames.leak()).await;
        let mut settings = settings(service.address);
        settings.upstream_version = UpstreamVersion::Http2;
        let proxy = start(settings).await;
        let mut client = Client::connect(proxy.listening()).await;
        let first = client.ask(KEYED).await;
        first.refused(502, "upstream_unreachable");
        assert_eq!(first.retry_after(), 1);
        client.ask(KEYED).await.ran(200);
    }
}

#[tokio::test]
async fn a_request_that_the_upstream_may_have_begun_is_not_released() {
    for frames in [
        vec![frames::reset(1, frames::CANCEL)],
        vec![frames::reset(1, frames::INTERNAL_ERROR)],
        vec![frames::go_away(1, frames::NO_ERROR)],
        vec![frames::go_away(1, frames::REFUSED_STREAM)],
        // Data of no stream: it is the proxy that gives this connection up, and that says nothing about the request.
        vec![frames::frame(frames::DATA, 0, 0, b"?")],
        vec![],
    ] {
        let service = answering_first(frames.leak()).await;
        let mut settings = settings(service.address);
        settings.upstream_version = UpstreamVersion::Http2;
        let proxy = start(settings).await;
        let mut client = Client::connect(proxy.listening()).await;
        client.ask(KEYED).await.refused(504, "outcome_unknown");
        assert_eq!(client.ask(KEYED).await.status, 409);
    }
}

#[tokio::test]
async fn an_answer_that_its_client_opens_no_window_for_is_given_up() {
    let body = "x".repeat(100_000);
    let service = Service::routed(axum::Router::new().fallback(move || async move { body })).await;
    let mut settings = settings(service.address);
    settings.listener.timeouts.body_idle = Duration::from_millis(200);
    let proxy = start(settings).await;
    let stream = TcpStream::connect(proxy.listening()).await.expect("connects");
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(1_000)
        .handshake(TokioIo::new(stream))
        .await
        .expect("speaks HTTP/2");
    let connection = tokio::spawn(connection);
    let response = sender.send_request(post("/", "")).await.expect("is answered");
    // The body is held, and not read.
    let ended = tokio::time::timeout(Duration::from_secs(10), connection).await;
    assert!(ended.is_ok(), "the connection is closed");
    assert!(response.into_body().collect().await.is_err(), "and the body is not whole");
}

#[tokio::test]
async fn a_connection_that_asks_for_nothing_more_is_closed() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.listener.timeouts.head = Duration::from_millis(100);
    let proxy = start(settings).await;
    let mut sender = connect(proxy.listening()).await;
    let seen = text(sender.send_request(post("/", "hi")).await.expect("is answered")).await;
    assert!(seen.starts_with("POST / "), "{seen}");
    let closed = tokio::time::timeout(Duration::from_secs(10), async {
        while !sender.is_closed() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(closed.await.is_ok());
}
