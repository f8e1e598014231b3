//! Each timeout bounds what it is named after, and nothing else: all others are an hour here.

use std::time::Duration;

use semel_proxy::{ProxySettings, UpstreamLimits};

use crate::certificate::{certificate, connect};
use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;

const SHORT: Duration = Duration::from_millis(150);
const LONG: Duration = Duration::from_hours(1);

/// Settings in which nothing ends by itself.
fn patient(service: &Service) -> ProxySettings {
    let mut settings = settings(service.address);
    let timeouts = &mut settings.listener.timeouts;
    for timeout in [&mut timeouts.handshake, &mut timeouts.head, &mut timeouts.body, &mut timeouts.body_idle]
    {
        *timeout = LONG;
    }
    settings.upstream_limits = UpstreamLimits {
        idle: LONG,
        connect: LONG,
        response: LONG,
        upgraded_idle: LONG,
        ..settings.upstream_limits
    };
    settings.http.body_timeout = LONG;
    settings
}

#[tokio::test]
async fn a_tls_handshake_has_a_time_of_its_own() {
    let (_folder, tls) = certificate();
    let service = Service::mirror().await;
    let mut settings = patient(&service);
    settings.listener.tls = Some(tls.clone());
    settings.listener.timeouts.handshake = SHORT;
    let proxy = start(settings).await;
    for first in [&b""[..], b"\x16\x03\x01"] {
        let mut client = Client::connect(proxy.listening()).await;
        client.write(first).await;
        assert!(client.has_ended().await, "{first:?}");
    }
    // Once it is over, the next head may take its own time.
    let mut client = Client::over(connect(proxy.listening(), &tls, b"http/1.1").await.expect("is secured"));
    tokio::time::sleep(SHORT * 2).await;
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.status, 200);
}

#[tokio::test]
async fn a_head_over_tls_has_the_time_of_a_head() {
    let (_folder, tls) = certificate();
    let service = Service::mirror().await;
    for protocol in [&b"http/1.1"[..], b"h2"] {
        let mut settings = patient(&service);
        settings.listener.tls = Some(tls.clone());
        settings.listener.timeouts.head = SHORT;
        let proxy = start(settings).await;
        let mut client = Client::over(connect(proxy.listening(), &tls, protocol).await.expect("is secured"));
        assert!(client.has_ended().await, "{}", String::from_utf8_lossy(protocol));
    }
}

#[tokio::test]
async fn a_body_with_a_key_has_a_time_for_all_of_it_however_steadily_it_comes() {
    let service = Service::mirror().await;
    let mut settings = patient(&service);
    settings.listener.timeouts.body = SHORT;
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    client
        .write(
            "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: t\r\nIdempotency-Key: k\r\nContent-Length: 10000\r\n\r\n",
        )
        .await;
    let (mut client, mut sending) = client.split();
    let trickling = tokio::spawn(async move {
        loop {
            tokio::time::sleep(SHORT / 5).await;
            sending.write("x").await;
        }
    });
    let answer = client.head().await.expect("is answered");
    trickling.abort();
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn a_body_that_keeps_coming_is_not_idle() {
    let service = Service::mirror().await;
    let mut settings = patient(&service);
    settings.listener.timeouts.body_idle = SHORT * 2;
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n").await;
    for _ in 0..8 {
        tokio::time::sleep(SHORT / 2).await;
        client.write("x").await;
    }
    assert!(client.answer(true).await.expect("is answered").text().ends_with("\nxxxxxxxx"));
}

#[tokio::test]
async fn an_answer_that_keeps_coming_is_not_idle() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        line.write("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n").await;
        for _ in 0..8 {
            tokio::time::sleep(SHORT / 2).await;
            line.write("x").await;
        }
    })
    .await;
    let mut settings = patient(&service);
    settings.listener.timeouts.body_idle = SHORT * 2;
    let proxy = start(settings).await;
    let answer = Client::connect(proxy.listening()).await.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer.text(), "xxxxxxxx");
}

#[tokio::test]
async fn the_time_for_an_answers_head_does_not_bound_its_body() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        line.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no").await;
        tokio::time::sleep(SHORT * 2).await;
        line.write("k").await;
    })
    .await;
    let mut settings = patient(&service);
    settings.upstream_limits.response = SHORT;
    let proxy = start(settings).await;
    let answer = Client::connect(proxy.listening()).await.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!((answer.status, answer.text()), (200, "ok"));
}

#[tokio::test]
async fn a_connection_that_an_upstream_kept_too_long_is_not_used_again() {
    let service = Service::scripted(|mut line| async move {
        while !line.head().await.is_empty() {
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        }
    })
    .await;
    let mut settings = patient(&service);
    settings.upstream_limits.idle = SHORT;
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    for connections in [1, 2] {
        assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.status, 200);
        assert_eq!(service.connections(), connections);
        assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.status, 200);
        assert_eq!(service.connections(), connections, "at once it is");
        tokio::time::sleep(SHORT * 2).await;
    }
}

#[tokio::test]
async fn an_upgraded_connection_that_moves_is_not_idle() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        line.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").await;
        for _ in 0..8 {
            tokio::time::sleep(SHORT / 2).await;
            line.write("x").await;
        }
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings = patient(&service);
    settings.upstream_limits.upgraded_idle = SHORT * 2;
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").await;
    assert_eq!(client.head().await.expect("is answered").status, 101);
    assert_eq!(client.bytes(8).await.expect("all of them come"), b"xxxxxxxx");
    assert!(client.has_ended().await, "and then nothing moves");
}
