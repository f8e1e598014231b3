//! HTTP/2 without TLS (h2c): many streams on one connection.

use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use test_http::soon;
use tokio::net::TcpStream;

use super::shop::{Shop, layer};

/// One connection; its clones share it.
async fn connect(at: SocketAddr) -> SendRequest<Full<Bytes>> {
    let stream = TokioIo::new(TcpStream::connect(at).await.unwrap());
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn charge(path: &str, caller: &str, key: &str) -> Request<Full<Bytes>> {
    Request::post(format!("http://shop.test{path}"))
        .header("authorization", caller)
        .header("idempotency-key", key)
        .body(Full::from(format!("{key} pays")))
        .unwrap()
}

/// An answer, read to its end.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn is_replay(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }

    fn is_in_flight(&self) -> bool {
        self.status == 409 && std::str::from_utf8(&self.body).unwrap().contains("in_flight")
    }
}

async fn ask(sender: &SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> Answer {
    let response = soon("an answer", sender.clone().send_request(request)).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = soon("a body", body.collect()).await.unwrap().to_bytes();
    Answer { status: parts.status, headers: parts.headers, body }
}

#[tokio::test]
async fn of_a_hundred_streams_on_one_connection_each_key_runs_once() {
    let shop = Shop::new();
    let at = shop.serve(shop.routes().layer(layer())).await;
    let connection = connect(at).await;
    let keys = (0..100).map(|number| format!("key-{}", number % 20)).collect::<Vec<_>>();
    let answers = join_all(keys.iter().map(|key| ask(&connection, charge("/charges", "alice", key)))).await;
    for (key, answer) in keys.iter().zip(&answers) {
        let is_answer = answer.status == 201 && answer.body.starts_with(b"charge ");
        assert!(is_answer || answer.is_in_flight(), "{key}: {answer:?}");
    }
    let first_runs = answers.iter().filter(|answer| answer.status == 201 && !answer.is_replay()).count();
    assert_eq!((first_runs, shop.charges()), (20, 20));
    for key in &keys[..20] {
        let retry = ask(&connection, charge("/charges", "alice", key)).await;
        assert!(retry.is_replay(), "{key}: {retry:?}");
        let first =
            keys.iter().zip(&answers).find(|(of, answer)| *of == key && answer.status == 201).unwrap().1;
        assert_eq!((&retry.body, &retry.headers["location"]), (&first.body, &first.headers["location"]));
    }
    assert_eq!(shop.charges(), 20);
}

#[tokio::test]
async fn callers_and_requests_on_one_connection_are_told_apart() {
    let shop = Shop::new();
    let at = shop.serve(shop.routes().layer(layer())).await;
    let connection = connect(at).await;
    let alice = ask(&connection, charge("/charges", "alice", "k")).await;
    let bob = ask(&connection, charge("/charges", "bob", "k")).await;
    assert!(!bob.is_replay() && bob.status == 201 && bob.body != alice.body, "{bob:?}");
    let other = charge("/charges", "alice", "k").map(|_| Full::from("another body"));
    assert_eq!(ask(&connection, other).await.status, 422);
    assert_eq!(shop.charges(), 2);
}

#[tokio::test]
async fn a_stream_that_is_reset_cancels_nothing_and_the_connection_goes_on() {
    let (shop, layer) = (Shop::new(), layer());
    let at = shop.serve(shop.routes().layer(layer.clone())).await;
    let connection = connect(at).await;
    let asked = tokio::spawn(connection.clone().send_request(charge("/slow", "alice", "k")));
    shop.slow_charge_began().await;
    // Dropping the future of a response resets its stream.
    asked.abort();
    shop.request_dropped().await;
    assert!(ask(&connection, charge("/slow", "alice", "k")).await.is_in_flight());
    shop.let_one_end();
    soon("the run to end", layer.none_running()).await;
    let retry = ask(&connection, charge("/slow", "alice", "k")).await;
    assert!(retry.is_replay() && retry.status == 201, "{retry:?}");
    assert_eq!(shop.charges(), 1);
}
