//! Connections that become something else than HTTP.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::Client;
use crate::proxied::{settings, start};
use crate::service::Service;

const UPGRADE: &str =
    "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\n";

/// Switches to a protocol that sends back what it gets.
async fn echo() -> Service {
    Service::scripted(|mut line| async move {
        let head = line.head().await;
        if !head.contains("upgrade: echo\r\n") || !head.contains("connection: upgrade\r\n") {
            return line.write("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n").await;
        }
        line.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhello ")
            .await;
        let mut bytes = [0; 1024];
        while let Ok(length @ 1..) = line.0.read(&mut bytes).await {
            line.0.write_all(&bytes[..length]).await.expect("is written");
        }
    })
    .await
}

#[tokio::test]
async fn an_upgraded_connection_carries_bytes_both_ways() {
    let service = echo().await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write(format!("{UPGRADE}early ")).await;
    let head = client.head().await.expect("is answered");
    assert_eq!((head.status, head.header("upgrade")), (101, Some("echo")));
    assert_eq!(client.bytes(12).await.expect("come back"), b"hello early ");
    client.write("later").await;
    assert_eq!(client.bytes(5).await.expect("come back"), b"later");
    client.half_close().await;
    assert!(client.has_ended().await, "the other side ends when this one does");
}

#[tokio::test]
async fn an_upgrade_to_another_http_is_not_passed_on() {
    let service = Service::mirror().await;
    let proxy = start(settings(service.address)).await;
    let request = UPGRADE.replace("echo", "h2c").replace("\r\n\r\n", "\r\nHTTP2-Settings: AAMA\r\n\r\n");
    let answer = Client::connect(proxy.listening()).await.ask(&request).await;
    assert_eq!(answer.status, 200);
    assert!(!answer.text().contains("h2c"), "{}", answer.text());
}

#[tokio::test]
async fn an_upgraded_connection_that_is_idle_for_too_long_ends() {
    let service = echo().await;
    let mut settings = settings(service.address);
    settings.upstream_limits.upgraded_idle = Duration::from_millis(100);
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write(UPGRADE).await;
    assert_eq!(client.head().await.expect("is answered").status, 101);
    assert_eq!(client.bytes(6).await.expect("come"), b"hello ");
    assert!(client.has_ended().await);
}

#[tokio::test]
async fn an_upgraded_connection_is_cut_off_at_the_end_of_a_drain() {
    let service = echo().await;
    let mut settings = settings(service.address);
    settings.listener.timeouts.drain = Duration::from_millis(100);
    let proxy = start(settings).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write(UPGRADE).await;
    assert_eq!(client.head().await.expect("is answered").status, 101);
    assert_eq!(client.bytes(6).await.expect("come"), b"hello ");
    assert_eq!(proxy.drain().await.cut_off, 1);
    assert!(client.has_ended().await);
}
