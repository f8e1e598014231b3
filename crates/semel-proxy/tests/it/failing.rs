//! An upstream that cannot be reached, hangs up, or does not answer: what never left is told from what nobody knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;

const PLAIN: &str = "POST /charges HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
const KEYED: &str = "POST /charges HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\nIdempotency-Key: k\r\n\
                     Content-Length: 2\r\n\r\nhi";

#[tokio::test]
async fn a_request_that_never_left_is_a_502_and_its_key_is_free_again() {
    let gone = Service::mirror().await;
    let address = gone.address;
    drop(gone);
    let proxy = start(settings(address)).await;
    for request in [PLAIN, KEYED, KEYED] {
        // A second time with the same key is not told that the first still runs.
        let answer = Client::connect(proxy.listening()).await.ask(request).await;
        assert_eq!(answer.status, 502, "{}", answer.text());
        assert!(answer.text().contains("\"code\":\"upstream_unreachable\""), "{}", answer.text());
        assert!(answer.header("retry-after").is_some());
    }
}

#[tokio::test]
async fn a_request_that_was_sent_and_lost_is_a_504_and_its_key_stays_taken() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let service = Service::scripted(move |mut line| {
        let counted = Arc::clone(&counted);
        async move {
            line.head().await;
            counted.fetch_add(1, Ordering::SeqCst);
        }
    })
    .await;
    let proxy = start(settings(service.address)).await;
    for request in [PLAIN, KEYED] {
        let answer = Client::connect(proxy.listening()).await.ask(request).await;
        assert_eq!(answer.status, 504, "{}", answer.text());
        assert!(answer.text().contains("\"code\":\"outcome_unknown\""), "{}", answer.text());
    }
    let answer = Client::connect(proxy.listening()).await.ask(KEYED).await;
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert!(answer.text().contains("\"code\":\"in_flight\""), "{}", answer.text());
    assert_eq!(asked.load(Ordering::SeqCst), 2, "nothing was sent twice");
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_unknown() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings = settings(service.address);
    settings.upstream_limits.response = Duration::from_millis(100);
    let proxy = start(settings).await;
    for (request, status) in [(PLAIN, 504), (KEYED, 504), (KEYED, 409)] {
        let answer = Client::connect(proxy.listening()).await.ask(request).await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    assert_eq!(service.connections(), 2);
}

#[tokio::test]
async fn an_upstream_that_closes_idle_connections_at_once_costs_no_request() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        line.bytes(2).await;
        // It does not say that it will close.
        line.write("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok").await;
    })
    .await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    for n in 0..50 {
        let keyed = KEYED.replace("Key: k", &format!("Key: k{n}"));
        for request in [PLAIN, &keyed] {
            let answer = client.ask(request).await;
            assert_eq!(answer.status, 201, "{n}: {}", answer.text());
            // The line is closed by now, as the upstream's end of it was dropped before this could be read; but the
            // notice of it may still be on its way through the kernel.
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_kept_response_that_breaks_off_is_unknown_and_not_kept() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        line.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this").await;
    })
    .await;
    let proxy = start(settings(service.address)).await;
    let answer = Client::connect(proxy.listening()).await.ask(KEYED).await;
    assert_eq!(answer.status, 504, "{}", answer.text());
    let answer = Client::connect(proxy.listening()).await.ask(KEYED).await;
    assert_eq!(answer.status, 409, "{}", answer.text());
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up_and_said_so() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings = settings(service.address);
    settings.listener.timeouts.body_idle = Duration::from_millis(100);
    let proxy = start(settings).await;
    for key in ["", "Authorization: t\r\nIdempotency-Key: k\r\n"] {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{key}Content-Length: 10\r\n\r\nhalf");
        let mut client = Client::connect(proxy.listening()).await;
        let answer = client.ask(&request).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains("\"code\":\"body_incomplete\""), "{}", answer.text());
        assert!(client.has_ended().await);
    }
}

#[tokio::test]
async fn a_response_that_stalls_is_cut_off() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        line.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings = settings(service.address);
    settings.listener.timeouts.body_idle = Duration::from_millis(100);
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(client.answer(true).await, None);
}

#[tokio::test]
async fn an_exchange_ends_with_its_client_of_http1() {
    let (asked, mut was_asked) = tokio::sync::mpsc::unbounded_channel();
    let service = Service::scripted(move |mut line| {
        let asked = asked.clone();
        async move {
            line.head().await;
            asked.send(()).expect("is awaited");
            let _ = tokio::io::AsyncReadExt::read(&mut line.0, &mut [0]).await;
            asked.send(()).expect("is awaited");
        }
    })
    .await;
    let mut settings = settings(service.address);
    settings.admin = Some("127.0.0.1:0".parse().expect("is an address"));
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    was_asked.recv().await.expect("was asked");
    drop(client);
    was_asked.recv().await.expect("the upstream's connection ends");
    let admin = proxy.admin().expect("listens");
    let scraped = Client::connect(admin).await.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(scraped.text().contains("semel_http_in_flight"), "{}", scraped.text());
    assert!(
        !scraped.text().contains("semel_http_upstream_abandoned_total 1"),
        "it went on without its client"
    );
}

/// Answers a covered request with a conflict of its own kind, and every other one like a shop.
async fn service_with_conflict(kind: &'static str) -> (Service, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let service = Service::scripted(move |mut line| {
        let counted = Arc::clone(&counted);
        async move {
            line.head().await;
            line.bytes(2).await;
            let body = format!(r#"{{"type":"{kind}","code":"in_flight"}}"#);
            let head = "HTTP/1.1 409 Conflict\r\nContent-Type: application/problem+json\r\n";
            match counted.fetch_add(1, Ordering::SeqCst) {
                0 => line.write(&format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).await,
                _ => line.write("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok").await,
            }
        }
    })
    .await;
    (service, asked)
}

#[tokio::test]
async fn a_refusal_of_a_semel_behind_the_proxy_is_not_kept_and_a_conflict_of_the_service_is() {
    for (kind, retry) in [("urn:semel:problem:in_flight", 201), ("https://shop.example/in_flight", 409)] {
        let (service, asked) = service_with_conflict(kind).await;
        let proxy = start(settings(service.address)).await;
        let first = Client::connect(proxy.listening()).await.ask(KEYED).await;
        assert_eq!(first.status, 409, "{}", first.text());
        let second = Client::connect(proxy.listening()).await.ask(KEYED).await;
        assert_eq!(second.status, retry, "{kind}: {}", second.text());
        let ran = if retry == 201 { 2 } else { 1 };
        assert_eq!(asked.load(Ordering::SeqCst), ran, "{kind}");
    }
}

#[tokio::test]
async fn a_proxy_before_a_proxy_replays_what_the_inner_one_has_once_its_run_ends() {
    let (go_on, waiting) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (released, begun) = (Arc::clone(&go_on), Arc::clone(&waiting));
    let service = Service::scripted(move |mut line| {
        let (released, begun) = (Arc::clone(&released), Arc::clone(&begun));
        async move {
            line.head().await;
            line.bytes(2).await;
            begun.notify_one();
            released.notified().await;
            line.write("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok").await;
        }
    })
    .await;
    let inner = start(settings(service.address)).await;
    let outer = start(settings(inner.listening())).await;
    let inner_at = inner.listening();
    let first = tokio::spawn(async move { Client::connect(inner_at).await.ask(KEYED).await });
    waiting.notified().await;
    let busy = Client::connect(outer.listening()).await.ask(KEYED).await;
    assert_eq!(busy.status, 409, "{}", busy.text());
    go_on.notify_one();
    assert_eq!(first.await.expect("is answered").status, 201);
    let retry = Client::connect(outer.listening()).await.ask(KEYED).await;
    assert_eq!((retry.status, retry.text().contains("ok")), (201, true), "{}", retry.text());
    assert_eq!(service.connections(), 1, "the service ran once");
}
