//! A server that is told to stop: nothing new is taken, waiting ends, and what runs finishes.

use std::time::Duration;

use semel_server::serve::{Drained, ServerSettings};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::started::{claim, post, start};
use crate::client::Client;

/// Longer than any of it takes, and shorter than what is waited for.
const SOON: Duration = Duration::from_secs(10);
const WAITING: &str = "{\"operation\":\"charge\",\"name\":\"a\",\"wait_ms\":60000}";

#[tokio::test]
async fn a_server_with_nothing_to_do_ends_at_once_and_listens_no_more() {
    let server = start(ServerSettings::in_memory()).await;
    let address = server.listening();
    let mut idle = Client::connect(address).await;
    assert_eq!(claim(address, "", "a").await.status, 200);
    let drained = timeout(SOON, server.drain()).await.expect("ends in time");
    assert_eq!(drained, Drained { finished: 0, cut_off: 0 });
    assert!(idle.has_ended().await && TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn whoever_waits_is_answered_when_the_server_stops() {
    let server = start(ServerSettings::in_memory()).await;
    let address = server.listening();
    assert!(claim(address, "", "a").await.text().contains("\"decision\":\"run\""));
    let mut waiting = Client::connect(address).await;
    waiting.write(post("/v1/claim", "", WAITING)).await;
    while server.served().waits.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    let started_at = Instant::now();
    let drain = tokio::spawn(server.drain());
    let answer = timeout(SOON, waiting.answer(true)).await.expect("comes in time").expect("is answered");
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("\"decision\":\"busy\""), "{}", answer.text());
    assert_eq!(drain.await.expect("ends"), Drained { finished: 1, cut_off: 0 });
    assert!(started_at.elapsed() < SOON);
}

#[tokio::test]
async fn while_it_stops_a_server_says_so_and_begins_nothing() {
    let mut settings = ServerSettings::in_memory();
    settings.listener.timeouts.drain = SOON;
    let server = start(settings).await;
    let address = server.listening();
    let (first, rest) = {
        let request = post("/v1/claim", "", "{\"operation\":\"charge\",\"name\":\"slow\"}");
        let (first, rest) = request.split_at(request.len() - 5);
        (first.to_owned(), rest.to_owned())
    };
    let mut slow = Client::connect(address).await;
    slow.write(&first).await;
    let what_it_serves = std::sync::Arc::clone(server.served());
    while server.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    let drain = tokio::spawn(server.drain());
    while !what_it_serves.waits.is_draining() {
        tokio::task::yield_now().await;
    }
    let ready = super::started::get(address, "/readyz", "").await;
    assert_eq!((ready.status, ready.text()), (503, "not ready: draining: nothing new is taken\n"));
    let refused = claim(address, "", "new").await;
    assert_eq!((refused.status, refused.header("connection")), (503, Some("close")));
    assert!(refused.text().contains("nothing was done"), "{}", refused.text());
    slow.write(&rest).await;
    let answer = slow.answer(true).await.expect("is answered");
    assert!(answer.text().contains("\"decision\":\"run\""), "what was begun is finished: {}", answer.text());
    assert_eq!(drain.await.expect("ends").cut_off, 0);
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_cut_off_and_counted() {
    let mut settings = ServerSettings::in_memory();
    settings.listener.timeouts.drain = Duration::from_millis(200);
    let server = start(settings).await;
    let address = server.listening();
    let mut slow = Client::connect(address).await;
    let request = post("/v1/claim", "", WAITING);
    slow.write(&request[..request.len() - 5]).await;
    while server.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.drain().await.cut_off, 1);
    assert!(slow.has_ended().await);
}
