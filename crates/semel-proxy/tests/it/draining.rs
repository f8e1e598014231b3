//! A proxy that is told to stop: what runs finishes, and nothing new is taken.

use std::sync::Arc;
use std::time::Duration;

use semel_proxy::Drained;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::client::Client;
use crate::http2::{connect, post};
use crate::proxied::{settings, start};
use crate::service::Service;

const KEYED: &str =
    "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: t\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n";

async fn held_up() -> (Service, Arc<Semaphore>) {
    let go_on = Arc::new(Semaphore::new(0));
    let theirs = Arc::clone(&go_on);
    let service = Service::scripted(move |mut line| {
        let go_on = Arc::clone(&theirs);
        async move {
            line.head().await;
            let _ = go_on.acquire().await.expect("is never closed");
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        }
    })
    .await;
    (service, go_on)
}

async fn asked(service: &Service, times: usize) {
    while service.connections() < times {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_runs_finishes_and_nothing_new_is_taken() {
    let (service, go_on) = held_up().await;
    let proxy = start(settings(service.address)).await;
    let address = proxy.listening();
    let mut idle = Client::connect(address).await;
    let mut busy = Client::connect(address).await;
    busy.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    asked(&service, 1).await;
    let drain = tokio::spawn(proxy.drain());
    assert!(idle.has_ended().await, "a connection that asks for nothing is closed at once");
    assert!(!drain.is_finished());
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    go_on.add_permits(1);
    let answer = busy.answer(true).await.expect("is answered");
    assert_eq!((answer.text(), answer.header("connection")), ("ok", Some("close")));
    assert_eq!(drain.await.expect("ends"), Drained { finished: 1, cut_off: 0 });
}

#[tokio::test]
async fn a_request_of_http2_is_waited_for_longer_than_a_connection_without_one() {
    let (service, go_on) = held_up().await;
    let proxy = start(settings(service.address)).await;
    let mut sender = connect(proxy.listening()).await;
    let asking = tokio::spawn(sender.send_request(post("/", "")));
    asked(&service, 1).await;
    let drain = tokio::spawn(proxy.drain());
    // Three times as long as a connection without a request is waited for.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    go_on.add_permits(1);
    assert_eq!(asking.await.expect("ends").expect("is answered").status(), 200);
    assert_eq!(drain.await.expect("ends"), Drained { finished: 1, cut_off: 0 });
}

#[tokio::test]
async fn a_run_whose_client_has_gone_is_waited_for() {
    let (service, go_on) = held_up().await;
    let proxy = start(settings(service.address)).await;
    let mut client = Client::connect(proxy.listening()).await;
    client.write(KEYED).await;
    asked(&service, 1).await;
    drop(client);
    let drain = tokio::spawn(proxy.drain());
    tokio::task::yield_now().await;
    assert!(!drain.is_finished());
    go_on.add_permits(1);
    assert_eq!(drain.await.expect("ends"), Drained { finished: 1, cut_off: 0 });
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_cut_off_and_counted() {
    let (service, _never) = held_up().await;
    let mut settings = settings(service.address);
    settings.listener.timeouts.drain = Duration::from_millis(200);
    let proxy = start(settings).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(proxy.listening()).await;
        client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        clients.push(client);
    }
    asked(&service, 3).await;
    assert_eq!(proxy.drain().await, Drained { finished: 0, cut_off: 3 });
    for mut client in clients {
        assert!(client.has_ended().await);
    }
}
