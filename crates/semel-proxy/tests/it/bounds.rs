//! How many of everything, and how long.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A service that answers nobody before it is told to.
async fn held_up() -> (Service, Arc<Semaphore>) {
    let go_on = Arc::new(Semaphore::new(0));
    let theirs = Arc::clone(&go_on);
    let service = Service::scripted(move |mut line| {
        let go_on = Arc::clone(&theirs);
        async move {
            while !line.head().await.is_empty() {
                let _ = go_on.acquire().await.expect("is never closed");
                line.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
        }
    })
    .await;
    (service, go_on)
}

#[tokio::test]
async fn a_request_too_many_is_told_to_come_back() {
    let (service, go_on) = held_up().await;
    let mut settings = settings(service.address);
    settings.listener.limits.in_flight_max = 2;
    let proxy = start(settings).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(proxy.listening()).await;
        client.write(GET).await;
        held.push(client);
    }
    while service.connections() < 2 {
        tokio::task::yield_now().await;
    }
    let refused = Client::connect(proxy.listening()).await.ask(GET).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(refused.text().contains("\"code\":\"overloaded\""), "{}", refused.text());
    go_on.add_permits(9);
    for mut client in held {
        assert_eq!(client.answer(true).await.expect("is answered").text(), "ok");
    }
    assert_eq!(Client::connect(proxy.listening()).await.ask(GET).await.status, 200, "there is room again");
}

#[tokio::test]
async fn one_peer_has_no_more_than_its_share_of_connections() {
    let (service, go_on) = held_up().await;
    go_on.add_permits(99);
    let mut settings = settings(service.address);
    settings.listener.limits.connections_per_peer_max = 2;
    let proxy = start(settings).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(proxy.listening()).await;
        assert_eq!(client.ask(GET).await.status, 200);
        held.push(client);
    }
    assert!(Client::connect(proxy.listening()).await.has_ended().await, "the third is closed at once");
    drop(held);
    // Its places are free again as soon as the proxy has seen that they were left.
    for _ in 0..1_000 {
        let mut client = Client::connect(proxy.listening()).await;
        client.write(GET).await;
        if client.answer(true).await.is_some() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("places that were left are not free again");
}

#[tokio::test]
async fn a_head_that_does_not_come_in_time_ends_the_connection() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.listener.timeouts.head = Duration::from_millis(100);
    let proxy = start(settings).await;
    for first in ["", "G", "PRI * HT", "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ", GET] {
        let mut client = Client::connect(proxy.listening()).await;
        client.write(first).await;
        if first == GET {
            assert_eq!(
                client.answer(true).await.expect("is answered").status,
                200,
                "and then it is idle for too long"
            );
        }
        assert!(client.has_ended().await, "{first:?}");
    }
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.listener.limits.head_bytes_max = 10_000;
    let proxy = start(settings).await;
    let with = |length: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX-Long: {}\r\n\r\n", "x".repeat(length));
    assert_eq!(Client::connect(proxy.listening()).await.ask(&with(9_000)).await.status, 200);
    let mut client = Client::connect(proxy.listening()).await;
    assert_eq!(client.ask(&with(11_000)).await.status, 431);
    assert!(client.has_ended().await);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_given_up() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        let _ = tokio::io::AsyncWriteExt::write_all(
            &mut line.0,
            format!("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}", "x".repeat(99_999_999))
                .as_bytes(),
        )
        .await;
    })
    .await;
    let mut settings = settings(service.address);
    settings.listener.timeouts.body_idle = Duration::from_millis(200);
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write(GET).await;
    client.head().await.expect("is answered");
    // Nothing is read for longer than that, as seen by the proxy: its drain has nothing left to wait for.
    let drained = proxy.drain().await;
    assert_eq!(drained.cut_off, 0);
    assert_eq!(client.bytes(99_999_999).await, None, "the rest never comes");
}
