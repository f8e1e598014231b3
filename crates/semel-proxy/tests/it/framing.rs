//! Requests whose length two readers could take differently: one reading, or none.

use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;

/// What a smuggler hopes that the proxy forwards as a request of its own.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn a_request_with_two_lengths_is_read_by_its_chunks_and_its_connection_closed() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    for lengths in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    ] {
        let mut client = Client::connect(proxy.listening()).await;
        let answer = client
            .ask(&format!("POST / HTTP/1.1\r\nHost: a\r\n{lengths}\r\n2\r\nhi\r\n0\r\n\r\n{SMUGGLED}"))
            .await;
        assert_eq!(answer.status, 200);
        assert!(answer.text().ends_with("\n\nhi"), "{}", answer.text());
        assert!(!answer.text().contains("content-length: 4"), "{}", answer.text());
        assert!(answer.text().contains("transfer-encoding: chunked"), "{}", answer.text());
        assert!(client.has_ended().await, "nothing after it is read");
    }
}

#[tokio::test]
async fn lengths_that_nobody_can_agree_on_are_refused() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    for head in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\na",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nX: b\r\n folded\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
    ] {
        let mut client = Client::connect(proxy.listening()).await;
        client.write(format!("{head}{SMUGGLED}")).await;
        let answer = client.answer(true).await.expect("is answered");
        assert_eq!(answer.status, 400, "{head:?}: {}", answer.text());
        assert!(client.has_ended().await, "{head:?}: nothing after it is read");
    }
}

#[tokio::test]
async fn chunks_that_are_not_chunks_end_the_connection() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    for chunks in [
        "zz\r\nhi\r\n0\r\n\r\n",
        "-2\r\nhi\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhi\r\n",
        "2\r\nhiXX0\r\n\r\n",
    ] {
        let mut client = Client::connect(proxy.listening()).await;
        client
            .write(format!(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}{SMUGGLED}"
            ))
            .await;
        if let Some(answer) = client.answer(true).await {
            assert_eq!(answer.status, 400, "{chunks:?}: {}", answer.text());
        }
        assert!(client.has_ended().await, "{chunks:?}: nothing after it is read");
    }
}

#[tokio::test]
async fn requests_that_are_sent_without_waiting_are_answered_in_their_order() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    let request = |n| format!("POST /{n} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    let requests: Vec<_> = (0..20).map(request).collect();
    client.write(requests.concat()).await;
    for n in 0..20 {
        let answer = client.answer(true).await.expect("is answered");
        assert!(answer.text().starts_with(&format!("POST /{n} ")), "{}", answer.text());
    }
}

#[tokio::test]
async fn an_early_answer_reaches_a_client_that_still_sends() {
    let service = Service::scripted(|mut line| async move {
        line.head().await;
        line.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno").await;
        // It reads no more than it must, and does not reset the line either.
        while line.0.readable().await.is_ok() && !matches!(line.0.try_read(&mut [0; 9_999]), Ok(0)) {}
    })
    .await;
    let proxy = start(settings(service.address)).await;
    let (mut reading, mut writing) = Client::connect(proxy.listening()).await.split();
    writing.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 400000\r\n\r\n").await;
    writing.write(vec![b'x'; 200_000]).await;
    let answer = reading.answer(true).await.expect("is answered");
    assert_eq!((answer.status, answer.text()), (403, "no"));
    assert!(reading.has_ended().await, "what was not read is not taken for the next request");
}
