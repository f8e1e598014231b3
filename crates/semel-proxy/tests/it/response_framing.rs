//! Answers of an upstream whose length two readers could take differently: one reading, or none.

use http_body_util::BodyExt as _;

use crate::client::{Answer, Client};
use crate::http2::{connect, post};
use crate::proxied::{settings, start};
use crate::service::Service;

/// The body of every answer here; a length of 5 would cut it, and the rest looks like an answer.
const BODY: &str = "whole HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle";

/// The same request without a key, and with one.
fn requests(method: &str, key: &str) -> [String; 2] {
    let keyed = format!("Authorization: Bearer t\r\nIdempotency-Key: {key}\r\n");
    ["", &keyed]
        .map(|lines| format!("{method} /{key} HTTP/1.1\r\nHost: a\r\n{lines}Content-Length: 0\r\n\r\n"))
}

/// Answers each request with this head, and the body in one chunk or as it is; `/next` with its own path.
async fn answering(head: &'static str, body: String) -> Service {
    Service::scripted(move |mut line| {
        let body = body.clone();
        async move {
            loop {
                let asked = line.head().await;
                if asked.is_empty() {
                    return;
                }
                if asked.starts_with("GET /next") {
                    line.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext").await;
                } else {
                    line.write(format!("{head}\r\n\r\n{body}")).await;
                }
                if head.contains("X-Then: close") {
                    return;
                }
            }
        }
    })
    .await
}

fn chunked() -> String {
    format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len())
}

/// What follows on the same connection is the answer to what was asked next, or the connection is closed.
async fn in_sync(client: &mut Client, what: &str) {
    client.write("GET /next HTTP/1.1\r\nHost: a\r\n\r\n").await;
    if let Some(next) = client.answer(true).await {
        assert_eq!((next.status, next.text()), (200, "next"), "{what}");
    }
}

fn is_refused(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 502, "{what}: {answer:?}");
    answer.refused(502, "outcome_unknown");
}

#[tokio::test]
async fn an_answer_with_a_length_and_chunks_is_read_by_its_chunks_and_its_connection_not_used_again() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nTRANSFER-ENCODING: Chunked",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nContent-Length: 7",
        "HTTP/1.1 200 OK\r\nContent-Length: five\r\nTransfer-Encoding: chunked",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\nTransfer-Encoding: chunked",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked",
    ] {
        for (at, request) in requests("POST", "k").into_iter().enumerate() {
            let service = answering(head, chunked()).await;
            let proxy = start(settings(service.address)).await;
            let mut client = Client::connect(proxy.listening()).await;
            let first = client.ask(&request).await;
            assert_eq!((first.status, first.text()), (200, BODY), "{head}, {at}");
            in_sync(&mut client, head).await;
            assert_eq!(service.connections(), 2, "{head}, {at}: its connection is used again");
            if at == 1 {
                client.ask(&request).await.replays(&first);
            }
        }
    }
}

#[tokio::test]
async fn a_coding_that_nobody_decodes_is_refused_and_its_outcome_is_unknown() {
    for head in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;q=1",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: , chunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked,\r\nX-Then: close",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\nX-Then: close",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\nX-Then: close",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\nX-Then: close",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: \r\nContent-Length: 5\r\nX-Then: close",
    ] {
        let service = answering(head, chunked()).await;
        let proxy = start(settings(service.address)).await;
        for (at, request) in requests("POST", "k").into_iter().enumerate() {
            let mut client = Client::connect(proxy.listening()).await;
            is_refused(&client.ask(&request).await, head);
            in_sync(&mut client, head).await;
            if at == 1 {
                let again = Client::connect(proxy.listening()).await.ask(&request).await;
                assert_eq!(again.status, 409, "{head}: nobody knows what it did: {again:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_has_one_length_as_digits_say_it() {
    for (lengths, is_read) in [
        ("Content-Length: 00051", true),
        ("Content-Length: 51, 51", true),
        ("Content-Length: 51\r\nContent-Length: 051", true),
        ("Content-Length: +51", false),
        ("Content-Length: 51, 52", false),
        ("Content-Length: 51\r\nContent-Length: 52", false),
        ("Content-Length: -51", false),
        ("Content-Length: 0x33", false),
    ] {
        assert_eq!(BODY.len(), 51);
        let head: &'static str = format!("HTTP/1.1 200 OK\r\n{lengths}").leak();
        let service = answering(head, BODY.to_owned()).await;
        let proxy = start(settings(service.address)).await;
        for request in requests("POST", "k") {
            let mut client = Client::connect(proxy.listening()).await;
            let answer = client.ask(&request).await;
            if is_read {
                assert_eq!((answer.all("content-length"), answer.text()), (vec!["51"], BODY), "{lengths}");
            } else {
                assert!(answer.code().as_deref() == Some("outcome_unknown"), "{lengths}: {answer:?}");
            }
            in_sync(&mut client, lengths).await;
        }
    }
}

#[tokio::test]
async fn an_answer_without_a_body_has_one_length_or_none() {
    for (method, head, lengths) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 0040", vec!["40"]),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 40, 40", vec!["40"]),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 40\r\nTransfer-Encoding: chunked", vec![]),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 040", vec![]),
        ("GET", "HTTP/1.1 204 No Content\r\nContent-Length: 40", vec![]),
    ] {
        let service = answering(head, String::new()).await;
        let proxy = start(settings(service.address)).await;
        let mut client = Client::connect(proxy.listening()).await;
        client.write(format!("{method} /x HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let answer = client.head().await.expect("is answered");
        assert_eq!(answer.all("content-length"), lengths, "{method} {head}: {answer:?}");
        in_sync(&mut client, head).await;
    }
    for lengths in ["+40", "40, 41", "x"] {
        let head: &'static str = format!("HTTP/1.1 200 OK\r\nContent-Length: {lengths}").leak();
        let service = answering(head, String::new()).await;
        let proxy = start(settings(service.address)).await;
        let mut client = Client::connect(proxy.listening()).await;
        client.write("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(client.head().await.expect("is answered").status, 502, "{lengths}");
        in_sync(&mut client, lengths).await;
    }
}

#[tokio::test]
async fn an_answer_has_the_version_of_the_proxy_and_not_of_the_upstream() {
    let service = answering("HTTP/1.0 200 OK\r\nContent-Length: 4", "body".to_owned()).await;
    let proxy = start(settings(service.address)).await;
    for request in requests("POST", "k") {
        let mut client = Client::connect(proxy.listening()).await;
        client.write(&request).await;
        let line = client.bytes(15).await.expect("is answered");
        assert_eq!(String::from_utf8_lossy(&line), "HTTP/1.1 200 OK");
    }
}

#[tokio::test]
async fn trailers_that_only_a_head_may_say_reach_nobody() {
    let trailers = "Content-Length: 3\r\nTransfer-Encoding: gzip\r\nSet-Cookie: a=1\r\nWWW-Authenticate: Basic\r\n\
                    Content-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Range: bytes 0-1/2\r\n\
                    Location: /evil\r\nCache-Control: public\r\nConnection: x-hop\r\nHost: evil\r\n\
                    Authorization: a\r\nTrailer: x-kept\r\nIdempotent-Replayed: true\r\nDate: now\r\nX-Kept: 1\r\n";
    let service =
        answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", format!("2\r\nhi\r\n0\r\n{trailers}\r\n"))
            .await;
    let proxy = start(settings(service.address)).await;
    for key in [None, Some("k"), Some("k")] {
        let mut request = post("/x", "");
        if let Some(key) = key {
            request.headers_mut().insert("idempotency-key", key.parse().expect("is a value"));
            request.headers_mut().insert("authorization", "t".parse().expect("is a value"));
        }
        let response = connect(proxy.listening()).await.send_request(request).await.expect("is answered");
        let whole = response.into_body().collect().await.expect("is whole");
        let trailers = whole.trailers().cloned().unwrap_or_default();
        let names: Vec<_> = trailers.keys().map(http::HeaderName::as_str).collect();
        assert_eq!(names, ["x-kept"], "{key:?}");
    }
}

#[tokio::test]
async fn bytes_that_nobody_asked_for_are_never_the_next_answer() {
    let service = Service::scripted(|mut line| async move {
        let mut asked = 0;
        while !line.head().await.is_empty() {
            asked += 1;
            line.write(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{asked}")).await;
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle").await;
        }
    })
    .await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    for _ in 0..50 {
        let answer = client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!((answer.status, answer.text()), (200, "1"));
    }
}
