//! Bodies pass as they come, in both directions, with their trailers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;

#[tokio::test]
async fn a_request_body_arrives_while_it_is_still_being_sent() {
    let seen = Arc::new(Notify::new());
    let told = Arc::clone(&seen);
    let service = Service::scripted(move |mut line| {
        let told = Arc::clone(&told);
        async move {
            line.head().await;
            assert_eq!(line.bytes(10).await, b"5\r\nfirst\r\n");
            told.notify_one();
            assert_eq!(line.bytes(16).await, b"6\r\nsecond\r\n0\r\n\r\n");
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        }
    })
    .await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
    timeout(Duration::from_secs(10), seen.notified())
        .await
        .expect("the first part arrives before the second is sent");
    client.write("6\r\nsecond\r\n0\r\n\r\n").await;
    assert_eq!(client.answer(true).await.expect("is answered").text(), "ok");
}

#[tokio::test]
async fn a_response_body_arrives_while_it_is_still_being_sent() {
    let go_on = Arc::new(Notify::new());
    let gone_on = Arc::clone(&go_on);
    let service = Service::scripted(move |mut line| {
        let go_on = Arc::clone(&go_on);
        async move {
            line.head().await;
            line.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
            go_on.notified().await;
            line.write("6\r\nsecond\r\n0\r\n\r\n").await;
        }
    })
    .await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.head().await.expect("comes before the body");
    assert_eq!(client.chunk().await.expect("is whole"), Some(b"first".to_vec()));
    gone_on.notify_one();
    assert_eq!(client.chunk().await.expect("is whole"), Some(b"second".to_vec()));
    assert_eq!(client.chunk().await.expect("is whole"), None);
}

#[tokio::test]
async fn trailers_pass_in_both_directions() {
    let service = Service::scripted(|mut line| async move {
        let head = line.head().await;
        assert!(head.contains("trailer: x-sum\r\n") && head.contains("te: trailers\r\n"), "{head}");
        assert_eq!(line.bytes(22).await, b"2\r\nhi\r\n0\r\nx-sum: 1\r\n\r\n");
        line.write("HTTP/1.1 200 OK\r\nTrailer: X-End\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nho\r\n0\r\nX-End: 2\r\n\r\n")
            .await;
    })
    .await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    let answer = client
        .ask(
            "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\nTrailer: x-sum\r\n\
             Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 1\r\n\r\n",
        )
        .await;
    assert_eq!(answer.text(), "ho");
    assert_eq!(answer.trailers, vec![("x-end".to_owned(), "2".to_owned())]);
}

#[tokio::test]
async fn a_response_that_breaks_off_is_not_ended_cleanly() {
    let service = Service::scripted(|mut line| async move {
        let head = line.head().await;
        if head.starts_with("GET /length") {
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this").await;
        } else {
            line.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nonly\r\n").await;
        }
    })
    .await;
    let proxy = start(settings(service.address)).await;
    for path in ["/length", "/chunks"] {
        let mut client = Client::connect(proxy.listening()).await;
        client.write(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        assert_eq!(client.answer(true).await, None, "{path}: the client must see that something is missing");
    }
}

#[tokio::test]
async fn a_large_body_passes_whole_in_both_directions() {
    let service =
        Service::routed(axum::Router::new().fallback(|body: axum::body::Body| async { body })).await;
    let proxy = start(settings(service.address)).await;
    let client = Client::connect(proxy.listening()).await;
    let body: Vec<u8> = (0..5_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 4]).collect();
    let (mut reading, mut writing) = client.split();
    let sent = body.clone();
    let writer = tokio::spawn(async move {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", sent.len());
        writing.write(head).await;
        writing.write(&sent).await;
        writing
    });
    let answer = reading.answer(true).await.expect("is answered");
    assert!(answer.body == body, "{} bytes of {} came back", answer.body.len(), body.len());
    drop(writer.await.expect("all was written"));
}
