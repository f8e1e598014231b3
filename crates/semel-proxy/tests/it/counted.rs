//! What is counted: requests by what was decided, failures of the upstream by kind, connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn keyed(key: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: t\r\nIdempotency-Key: {key}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

async fn metrics(admin: SocketAddr) -> String {
    let answer = Client::connect(admin).await.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    answer.text().to_owned()
}

fn value(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().expect("is a number"))
}

async fn is_at(admin: SocketAddr, name: &str, expected: f64) {
    test_http::until(&format!("{name} {expected}"), async || {
        (value(&metrics(admin).await, name) - expected).abs().lt(&0.5).then_some(())
    })
    .await;
}

#[tokio::test]
async fn every_request_counts_once_by_what_was_decided_and_by_its_status() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.admin = Some("127.0.0.1:0".parse().expect("is an address"));
    let proxy = start(settings).await;
    let admin = proxy.admin().expect("listens");
    let mut client = Client::connect(proxy.listening()).await;
    for request in [&keyed("k", "1"), &keyed("k", "1"), &keyed("k", "1"), &keyed("k", "2"), GET] {
        client.ask(request).await;
    }
    client.ask("GET / HTTP/1.1\r\nHost: a b\r\n\r\n").await;
    for (name, expected) in [
        ("decision=\"run\",status=\"2xx\"", 1.0),
        ("decision=\"replay\",status=\"2xx\"", 2.0),
        ("decision=\"mismatch\",status=\"4xx\"", 1.0),
        ("decision=\"pass\",status=\"2xx\"", 1.0),
        ("decision=\"refused\",status=\"4xx\"", 1.0),
        ("decision=\"run\",status=\"none\"", 0.0),
    ] {
        is_at(admin, &format!("semel_http_requests_total{{{name}}}"), expected).await;
    }
    is_at(admin, "semel_http_in_flight", 0.0).await;
}

#[tokio::test]
async fn a_request_is_in_flight_until_the_last_byte_of_its_answer_and_a_connection_until_it_ends() {
    let go_on = Arc::new(Semaphore::new(0));
    let theirs = Arc::clone(&go_on);
    let service = Service::scripted(move |mut line| {
        let go_on = Arc::clone(&theirs);
        async move {
            line.head().await;
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no").await;
            let _ = go_on.acquire().await.expect("is never closed");
            line.write("k").await;
        }
    })
    .await;
    let mut settings = settings(service.address);
    settings.admin = Some("127.0.0.1:0".parse().expect("is an address"));
    let proxy = start(settings).await;
    let admin = proxy.admin().expect("listens");
    let mut client = Client::connect(proxy.listening()).await;
    client.write(GET).await;
    assert_eq!(client.head().await.expect("is answered").status, 200);
    assert_eq!(client.bytes(1).await.expect("comes"), b"o");
    let during = metrics(admin).await;
    assert!((value(&during, "semel_http_in_flight") - 1.0).abs() < 0.5, "{during}");
    assert!((value(&during, "semel_http_connections") - 1.0).abs() < 0.5, "{during}");
    go_on.add_permits(1);
    assert_eq!(client.bytes(1).await.expect("comes"), b"k");
    is_at(admin, "semel_http_in_flight", 0.0).await;
    drop(client);
    is_at(admin, "semel_http_connections", 0.0).await;
}

#[tokio::test]
async fn a_failure_of_the_upstream_counts_by_its_kind() {
    let service = Service::scripted(|mut line| async move {
        let head = line.head().await;
        if head.starts_with("GET /slow") {
            std::future::pending::<()>().await;
        }
        if head.starts_with("GET /malformed") {
            line.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n").await;
        }
        if head.starts_with("GET /switched") {
            line.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
        }
    })
    .await;
    let mut settings = settings(service.address);
    settings.admin = Some("127.0.0.1:0".parse().expect("is an address"));
    settings.upstream_limits.response = Duration::from_millis(100);
    let proxy = start(settings).await;
    let admin = proxy.admin().expect("listens");
    for (path, kind, status) in [
        ("slow", "too_slow", 504),
        ("malformed", "malformed", 502),
        ("switched", "switched", 504),
        ("lost", "lost", 504),
    ] {
        let request = format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = Client::connect(proxy.listening()).await.ask(&request).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        let found = metrics(admin).await;
        let name = format!("semel_http_upstream_errors_total{{kind=\"{kind}\"}}");
        assert!((value(&found, &name) - 1.0).abs() < 0.5, "{name}: {found}");
    }
}

#[tokio::test]
async fn connections_that_are_refused_or_lose_their_place_are_counted() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.admin = Some("127.0.0.1:0".parse().expect("is an address"));
    settings.listener.limits.connections_per_peer_max = 1;
    let proxy = start(settings).await;
    let admin = proxy.admin().expect("listens");
    let mut silent = Client::connect(proxy.listening()).await;
    let mut asking = Client::connect(proxy.listening()).await;
    assert_eq!(asking.ask(GET).await.status, 200);
    assert!(silent.has_ended().await, "it gave way");
    assert!(Client::connect(proxy.listening()).await.has_ended().await, "the other keeps its place");
    is_at(admin, "semel_http_connections_evicted_total", 1.0).await;
    is_at(admin, "semel_http_connections_refused_total", 1.0).await;
}
