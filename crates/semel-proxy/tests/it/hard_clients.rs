//! Clients that leave, go on sending, or wait for long, and what the proxy does for each of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::BodyExt as _;
use test_http::frames::{self, Frame};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client::Client;
use crate::http2::{connect, post};
use crate::proxied::{settings, start};
use crate::service::Service;

const SHORT: Duration = Duration::from_millis(150);

#[tokio::test]
async fn an_answer_that_its_client_left_is_read_on_only_so_far() {
    let (sent, at_end) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Notify::new()));
    let (counted, ended) = (Arc::clone(&sent), Arc::clone(&at_end));
    let service = Service::scripted(move |mut line| {
        let (sent, ended) = (Arc::clone(&counted), Arc::clone(&ended));
        async move {
            line.head().await;
            let _ = line.0.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
            let chunk = [b"10000\r\n".as_slice(), &vec![b'x'; 0x10000], b"\r\n"].concat();
            while line.0.write_all(&chunk).await.is_ok() {
                sent.fetch_add(chunk.len(), Ordering::SeqCst);
            }
            ended.notify_one();
        }
    })
    .await;
    let proxy = start(settings(service.address)).await;
    let mut stream = TcpStream::connect(proxy.listening()).await.expect("connects");
    let first = [frames::PREFACE.as_slice(), &frames::frame(frames::SETTINGS, 0, 0, &[])].concat();
    stream.write_all(&first).await.expect("is written");
    let get = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")];
    stream.write_all(&frames::headers(1, &get, frames::END_STREAM)).await.expect("is written");
    while Frame::read(&mut stream).await.expect("is answered").kind != frames::DATA {}
    // Its window is full by now, and the upstream waits; then the client leaves.
    let before = test_http::until("an upstream that waits", async || {
        let before = sent.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(30)).await;
        (before > 0 && sent.load(Ordering::SeqCst) == before).then_some(before)
    })
    .await;
    stream.write_all(&frames::reset(1, frames::CANCEL)).await.expect("is written");
    at_end.notified().await;
    let more = sent.load(Ordering::SeqCst) - before;
    assert!(more < 16 << 20, "{more} bytes were read for no client");
}

#[tokio::test]
async fn answers_that_the_upstream_breaks_off_are_not_held_against_the_client() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        line.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
    })
    .await;
    let proxy = start(settings(service.address)).await;
    let sender = connect(proxy.listening()).await;
    for _ in 0..8 {
        let asked = (0..100).map(|_| {
            let mut sender = sender.clone();
            tokio::spawn(async move {
                // The reset may overtake the head of the answer.
                let response = sender.send_request(post("/", "")).await.ok()?;
                Some((response.status().as_u16(), response.into_body().collect().await.is_err()))
            })
        });
        for one in asked.collect::<Vec<_>>() {
            let answer = one.await.expect("ends");
            assert!(matches!(answer, None | Some((200, true))), "the client gave up nothing: {answer:?}");
        }
        assert!(!sender.is_closed(), "the connection stays");
    }
}

#[tokio::test]
async fn a_reload_keeps_the_time_for_the_whole_of_a_body() {
    let service = Service::mirror().await;
    let mut settings = settings(service.address);
    settings.listener.timeouts.body = SHORT;
    settings.http.body_timeout = Duration::from_hours(1);
    let proxy = start(settings.clone()).await;
    proxy.reload(settings).expect("is taken");
    let half = "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: t\r\nIdempotency-Key: k\r\nContent-Length: 9\r\n\r\nhalf";
    let mut client = Client::connect(proxy.listening()).await;
    client.write(half).await;
    let answer = tokio::time::timeout(Duration::from_secs(20), client.answer(true)).await;
    answer.expect("within its time").expect("is answered").refused(400, "body_incomplete");
}

#[tokio::test]
async fn an_upgrade_that_connection_does_not_name_is_none() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    for connection in ["", "Connection: keep-alive\r\n", "Connection: not-upgrade, x\r\n"] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{connection}Upgrade: echo\r\n\r\n");
        let answer = Client::connect(proxy.listening()).await.ask(&request).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.text().contains("upgrade"), "{connection:?}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_connection_of_http2_is_not_idle_while_a_request_on_it_is_served() {
    let service = Service::routed(axum::Router::new().fallback(async || {
        tokio::time::sleep(SHORT * 6).await;
        "late"
    }))
    .await;
    let mut settings = settings(service.address);
    settings.listener.timeouts.head = SHORT;
    let proxy = start(settings).await;
    let mut sender = connect(proxy.listening()).await;
    for _ in 0..2 {
        let response = sender.send_request(post("/", "")).await.expect("the connection stays");
        let body = response.into_body().collect().await.expect("is whole").to_bytes();
        assert_eq!(body, "late");
    }
}

#[tokio::test]
async fn a_client_that_goes_on_sending_after_its_last_answer_is_left() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    let last = client.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert_eq!(last.status, 200);
    let piece = vec![b'x'; 64 << 10];
    let mut sent = 0_usize;
    while client.try_write(&piece).await.is_ok() {
        sent += piece.len();
        assert!(sent < 256 << 20, "it is read from for ever");
    }
    assert_eq!(proxy.drain().await.cut_off, 0);
}
