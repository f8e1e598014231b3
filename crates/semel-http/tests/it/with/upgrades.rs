//! Upgrades, such as websockets: passed through, and never kept.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use hyper_util::rt::TokioIo;
use test_http::Client;
use tokio::io::{copy, split};

use super::shop::{Shop, ask, layer};

/// Takes over the connection and echoes what comes. The answer to the key is the one in RFC 6455.
async fn feed(State(shop): State<Shop>, mut request: Request) -> Response {
    shop.charge();
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let (mut reading, mut writing) = split(TokioIo::new(upgraded.await.unwrap()));
        copy(&mut reading, &mut writing).await
    });
    Response::builder()
        .status(101)
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        .body(Body::empty())
        .unwrap()
}

async fn serve(shop: &Shop) -> SocketAddr {
    let app = Router::new().route("/feed", any(feed)).with_state(shop.clone()).layer(layer());
    shop.serve(app).await
}

fn upgrade(method: &str) -> test_http::Request {
    test_http::Request::new(method, "/feed")
        .from("alice")
        .key("k")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
}

/// Upgrades, and sees what it sends come back.
async fn assert_echoes(at: SocketAddr, request: &test_http::Request) {
    let mut client = Client::connect(at).await;
    client.write(request.bytes()).await;
    let head = client.head().await.unwrap();
    assert_eq!((head.status, head.header("upgrade")), (101, Some("websocket")), "{head:?}");
    assert_eq!(head.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    // A ping with the payload `hi`, masked with zeros.
    let frame = b"\x89\x82\0\0\0\0hi";
    client.write(frame).await;
    assert_eq!(client.bytes(frame.len()).await.as_deref(), Some(&frame[..]));
}

/// A websocket starts with GET, which is never covered: the key is not looked at.
#[tokio::test]
async fn a_websocket_passes_and_may_be_opened_again() {
    let shop = Shop::new();
    let at = serve(&shop).await;
    for _ in 0..2 {
        assert_echoes(at, &upgrade("GET")).await;
    }
    assert_eq!(shop.charges(), 2);
}

#[tokio::test]
async fn an_upgrade_with_a_covered_method_passes_once_and_its_outcome_is_not_kept() {
    let shop = Shop::new();
    let at = serve(&shop).await;
    assert_echoes(at, &upgrade("POST")).await;
    let problem = ask(at, &upgrade("POST")).await.refused(409, "outcome_not_kept");
    assert_eq!(problem["original_status"], 101);
    assert_eq!(shop.charges(), 1);
}
