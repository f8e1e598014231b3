//! HTTP/1.1, HTTP/2, TLS, and clients that dawdle.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use semel_server::serve::ServerSettings;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::started::{get, post, start};
use crate::certificate;
use crate::client::Client;

const CLAIM: &str = "{\"operation\":\"charge\",\"name\":\"a\"}";

/// Claims over HTTP/2, and says what came of it.
async fn claim_over_http2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> (u16, String) {
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("speaks HTTP/2");
    tokio::spawn(connection);
    let request = Request::post("http://localhost/v1/claim")
        .header("content-type", "application/json")
        .body(Full::<Bytes>::from(CLAIM))
        .expect("is a request");
    let answer = sender.send_request(request).await.expect("is answered");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("is whole").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("is text"))
}

#[tokio::test]
async fn both_versions_of_http_are_spoken_on_one_port() {
    let server = start(ServerSettings::in_memory()).await;
    let mut kept = Client::connect(server.listening()).await;
    for decision in ["run", "busy"] {
        let answer = kept.ask(&post("/v1/claim", "", CLAIM)).await;
        assert!(answer.text().contains(&format!("\"decision\":\"{decision}\"")), "{}", answer.text());
    }
    let stream = TcpStream::connect(server.listening()).await.expect("connects");
    let (status, text) = claim_over_http2(stream).await;
    assert_eq!(status, 200);
    assert!(text.contains("\"decision\":\"busy\""), "{text}");
}

#[tokio::test]
async fn both_versions_are_spoken_inside_tls_and_cookies_say_so() {
    let (_folder, tls) = certificate::certificate();
    let mut settings = ServerSettings::in_memory();
    settings.listener.tls = Some(tls.clone());
    let server = start(settings).await;
    let stream = certificate::connect(server.listening(), &tls, b"http/1.1").await.expect("is secured");
    let mut client = Client::over(stream);
    let answer = client.ask(&post("/v1/claim", "", CLAIM)).await;
    assert!(answer.text().contains("\"decision\":\"run\""), "{}", answer.text());
    let page = client.ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(page.header("set-cookie").is_some_and(|cookie| cookie.contains("; Secure")), "{page:?}");
    let stream = certificate::connect(server.listening(), &tls, b"h2").await.expect("is secured");
    assert!(claim_over_http2(stream).await.1.contains("\"decision\":\"busy\""));
    let mut plain = Client::connect(server.listening()).await;
    plain.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(plain.answer(true).await.is_none(), "nothing is said in the clear");
}

#[tokio::test]
async fn a_head_or_a_body_that_dawdles_is_given_up_and_others_are_served() {
    let mut settings = ServerSettings::in_memory();
    settings.listener.timeouts.head = Duration::from_millis(200);
    settings.listener.timeouts.body = Duration::from_millis(200);
    let server = start(settings).await;
    let mut slow_head = Client::connect(server.listening()).await;
    slow_head.write("GET /healthz HT").await;
    let mut slow_body = Client::connect(server.listening()).await;
    let request = post("/v1/claim", "", CLAIM);
    slow_body.write(&request[..request.len() - 5]).await;
    let mut idle = Client::connect(server.listening()).await;
    assert_eq!(idle.ask("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await.status, 200);
    assert_eq!(get(server.listening(), "/healthz", "").await.status, 200);
    assert!(slow_head.has_ended().await && idle.has_ended().await);
    let refused = slow_body.answer(true).await;
    assert!(refused.is_none_or(|answer| (400..500).contains(&answer.status)), "it never came to its end");
}

#[tokio::test]
async fn connections_and_requests_too_many_are_turned_away() {
    let mut settings = ServerSettings::in_memory();
    settings.listener.limits.connections_per_peer_max = 2;
    let server = start(settings).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(server.listening()).await;
        assert_eq!(client.ask("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await.status, 200);
        held.push(client);
    }
    assert!(Client::connect(server.listening()).await.has_ended().await, "one more is closed at once");
    let mut settings = ServerSettings::in_memory();
    settings.listener.limits.in_flight_max = 0;
    let server = start(settings).await;
    let answer = get(server.listening(), "/healthz", "").await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert!(answer.text().contains("\"code\":\"unavailable\""), "{}", answer.text());
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let mut settings = ServerSettings::in_memory();
    settings.listener.limits.head_bytes_max = 8 << 10;
    let server = start(settings).await;
    let answer = get(server.listening(), "/healthz", &format!("X: {}\r\n", "x".repeat(16 << 10))).await;
    assert_eq!(answer.status, 431);
}
