//! Nothing waits for ever: every ask ends in a stated time.

use std::time::Duration;

use semel::{Claim, ErrorKind, Outcome, Semel};
use semel_postgres::{PostgresStore, migrate};
use test_services::{Link, Postgres};
use tokio::time::Instant;

use crate::server::{alone, client, granted, key};

async fn engine(url: &str) -> Semel {
    Semel::builder(PostgresStore::connect(url).await.unwrap()).replays_kept(0, 0).no_sweep().build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_without_a_reply_is_unknown_in_time_and_a_read_is_unavailable() {
    let server = Postgres::start_in_memory(&[]).unwrap();
    migrate(&server.url()).await.unwrap();
    let link = Link::to(server.port()).unwrap();
    let semel = engine(&format!("{}?reply_within_ms=700", server.url_over(&link))).await;
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key)).await;
    link.swallow_replies();
    let started_at = Instant::now();
    let error = permit.complete(Outcome::success("ch_1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    assert!(error.permit_id().is_some(), "it can be asked again");
    assert!(started_at.elapsed() < Duration::from_secs(5), "{:?}", started_at.elapsed());
    let error = semel.get(&key).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    link.mend();
    permit.complete(Outcome::success("ch_1")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_vanished_is_left_in_time_and_found_again() {
    let server = Postgres::start_in_memory(&[]).unwrap();
    migrate(&server.url()).await.unwrap();
    let link = Link::to(server.port()).unwrap();
    let url = format!("{}?reply_within_ms=700&connect_within_ms=400", server.url_over(&link));
    let semel = engine(&url).await;
    drop(granted(&semel, Claim::new(&key("charge"))).await);
    link.freeze();
    for _ in 0..2 {
        let started_at = Instant::now();
        assert!(semel.claim(Claim::new(&key("charge"))).await.is_err());
        assert!(started_at.elapsed() < Duration::from_secs(4), "{:?}", started_at.elapsed());
    }
    link.mend();
    let mended_at = Instant::now();
    while semel.claim(Claim::new(&key("charge"))).await.is_err() {
        assert!(mended_at.elapsed() < Duration::from_secs(10), "the store did not come back");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_another_session_holds_does_not_hold_a_claim_for_ever() {
    let (_, url) = alone().await;
    let semel = engine(&format!("{url}&reply_within_ms=500")).await;
    drop(granted(&semel, Claim::new(&key("charge"))).await);
    let mut other = client(&url).await;
    let locked = other.transaction().await.unwrap();
    locked.batch_execute("LOCK TABLE semel_records IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let error = semel.claim(Claim::new(&key("charge"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    locked.rollback().await.unwrap();
    drop(granted(&semel, Claim::new(&key("charge"))).await);
}
