//! What answers hold that their clients do not read.

use std::time::Duration;

use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use semel_proxy::UpstreamVersion;
use tokio::net::TcpStream;

use crate::client::Client;
use crate::http2::post;
use crate::proxied::{settings, start};
use crate::service::Service;

/// Fewer than an upstream of HTTP/2 allows at once, unless it is told otherwise.
const ANSWERS: usize = 150;
const PAGE_BYTES: usize = 4_096;
/// More than any buffer holds.
const PARTS: usize = 2_000;
static PART: [u8; 64 << 10] = [b'x'; 64 << 10];

/// Bytes of memory that this process holds. The test's own clients and service are part of it, and hold next to nothing.
fn held() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("is Linux");
    let pages: usize = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("is a number");
    pages * PAGE_BYTES
}

/// A service whose answers are long, and that makes them of one and the same part.
async fn long_answers() -> Service {
    let answer = || async {
        let parts = (0..PARTS).map(|_| Ok::<_, std::io::Error>(bytes::Bytes::from_static(&PART)));
        axum::body::Body::from_stream(futures_util::stream::iter(parts))
    };
    Service::routed(axum::Router::new().fallback(answer)).await
}

/// Waits until nothing more is taken up: what is held then.
async fn settled(before: usize) -> usize {
    let mut last = 0;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = held().saturating_sub(before);
        if now <= last {
            return now;
        }
        last = now;
    }
    last
}

/// More than the buffers of one answer may hold, with what its tasks and sockets take.
const EACH_MAX: usize = 400 << 10;

/// What each of many answers holds to clients of HTTP/1.1 that do not read.
async fn held_for_http1(upstream: UpstreamVersion) -> usize {
    let service = long_answers().await;
    let mut settings = settings(service.address);
    settings.upstream_version = upstream;
    let proxy = start(settings).await;
    let before = held();
    let mut clients = Vec::new();
    for _ in 0..ANSWERS {
        let mut client = Client::connect(proxy.listening()).await;
        client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.head().await.expect("is answered");
        clients.push(client);
    }
    settled(before).await / ANSWERS
}

/// The same to clients of HTTP/2 that open no window.
async fn held_for_http2() -> usize {
    let service = long_answers().await;
    let proxy = start(settings(service.address)).await;
    let before = held();
    let mut answers = Vec::new();
    for _ in 0..3 {
        let stream = TcpStream::connect(proxy.listening()).await.expect("connects");
        let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(1_000)
            .handshake(TokioIo::new(stream))
            .await
            .expect("speaks HTTP/2");
        tokio::spawn(connection);
        for _ in 0..ANSWERS / 3 {
            let answer = sender.send_request(post("/", "")).await.expect("is answered");
            answers.push(answer.into_body());
        }
    }
    settled(before).await / ANSWERS
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_a_client_of_http1_does_not_read_holds_little() {
    let each = held_for_http1(UpstreamVersion::Http1).await;
    eprintln!("{each} bytes each");
    assert!(each < EACH_MAX, "{each} bytes each");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_a_client_of_http2_does_not_read_holds_little() {
    let each = held_for_http2().await;
    eprintln!("{each} bytes each");
    assert!(each < EACH_MAX, "{each} bytes each");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_an_http2_upstream_that_is_not_read_holds_little() {
    let each = held_for_http1(UpstreamVersion::Http2).await;
    eprintln!("{each} bytes each");
    assert!(each < EACH_MAX, "{each} bytes each");
}
