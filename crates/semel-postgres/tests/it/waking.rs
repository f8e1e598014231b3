//! Whoever waits in one process is woken by another.

use std::time::Duration;

use semel::{Claim, Decision, Outcome, RecordId, Semel};
use semel_postgres::PostgresStore;
use tokio_postgres::{AsyncMessage, Client};

use crate::server::{alone, client, granted, key};

async fn waiters(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM semel_waiters", &[]).await.unwrap().get(0)
}

/// Polls until it is so; a test that waits for ever is ended by its runner.
async fn until(client: &Client, expected: i64) {
    while waiters(client).await != expected {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_hears_of_a_run_that_ends_in_another_process() {
    let (store, url) = alone().await;
    let here = Semel::new(store.clone());
    let _listening = store.wake_ups(&here);
    let elsewhere = Semel::new(PostgresStore::connect(&url).await.unwrap());
    let key = key("charge");
    let permit = granted(&elsewhere, Claim::new(&key)).await;
    let waiting = tokio::spawn({
        let (here, key) = (here.clone(), key.clone());
        async move { here.claim_or_wait(Claim::new(&key), Duration::from_mins(1)).await }
    });
    let client = client(&url).await;
    until(&client, 1).await;
    permit.complete(Outcome::success(*b"ch_1")).await.unwrap();
    let Decision::Replay(replay) = waiting.await.unwrap().unwrap() else { panic!("the outcome is there") };
    assert_eq!(&replay.outcome().bytes()[..], b"ch_1");
}

/// How often a third process hears of the record that is settled meanwhile. Other tests notify on the same server.
async fn heard_of(url: &str, settle: impl AsyncFnOnce() -> RecordId) -> usize {
    let listener = client_that_hears(url).await;
    let settled = settle().await.to_string();
    listener().await.iter().filter(|heard| **heard == settled).count()
}

/// Listens on a connection of its own, and says at the end what it heard.
async fn client_that_hears(url: &str) -> impl AsyncFnOnce() -> Vec<String> {
    let (client, mut connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            drop(tell.send(message));
        }
    });
    client.batch_execute("LISTEN semel_settled").await.unwrap();
    move || async move {
        // What was notified before this answer was sent is here when it is.
        client.batch_execute("SELECT 1").await.unwrap();
        let mut heard = Vec::new();
        while let Ok(message) = told.try_recv() {
            if let AsyncMessage::Notification(note) = message {
                heard.push(note.payload().to_owned());
            }
        }
        heard
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settle_notifies_only_while_somebody_waits() {
    let (store, url) = alone().await;
    let semel = Semel::new(store);
    let settle = async || {
        let permit = granted(&semel, Claim::new(&key("charge"))).await;
        permit.complete(Outcome::success(*b"ch_1")).await.unwrap();
        permit.key().id()
    };
    assert_eq!(heard_of(&url, &settle).await, 0, "nobody waits");
    let client = client(&url).await;
    let wait = "INSERT INTO semel_waiters VALUES (gen_random_uuid(), clock_timestamp() + interval '1 hour')";
    client.batch_execute(wait).await.unwrap();
    assert_eq!(heard_of(&url, &settle).await, 1, "somebody waits");
    client.batch_execute("UPDATE semel_waiters SET until = clock_timestamp()").await.unwrap();
    assert_eq!(heard_of(&url, &settle).await, 0, "nobody waits any more");
}
