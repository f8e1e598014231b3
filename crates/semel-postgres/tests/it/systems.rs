//! Rows of the systems that semel replaces which are about storage, by the names of those systems.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use semel::store::{Loaded, Page, Reply, Scan, Store, SwapReplies, Swaps, Swept};
use semel::{Claim, Decision, ErrorKind, Key, Outcome, RecordId, Semel};
use semel_postgres::{PostgresStore, migrate};

use crate::server::{alone, client, empty_schema, granted, key};

/// Counts what is asked of a store.
struct Counting(PostgresStore, Arc<AtomicUsize>);

impl Counting {
    fn count<T>(&self, reply: Reply<T>) -> Reply<T> {
        self.1.fetch_add(1, Ordering::Relaxed);
        reply
    }
}

impl Store for Counting {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        self.count(self.0.swap(batch))
    }
    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        self.count(self.0.load(ids))
    }
    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.count(self.0.sweep(limit))
    }
    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.count(self.0.scan(scan))
    }
}

#[tokio::test]
async fn cratestack_one_statement_claims_or_hands_back_the_live_record() {
    let (store, _) = alone().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let semel = Semel::builder(Counting(store, Arc::clone(&asked))).replays_kept(0, 0).build().unwrap();
    let round_trips = || asked.swap(0, Ordering::Relaxed);
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key)).await;
    assert_eq!(round_trips(), 1, "a claim");
    assert!(matches!(semel.claim(Claim::new(&key)).await.unwrap(), Decision::Busy(_)));
    assert_eq!(round_trips(), 1, "a duplicate of what runs");
    permit.complete(Outcome::success("paid")).await.unwrap();
    assert_eq!(round_trips(), 1, "a complete");
    assert!(matches!(semel.claim(Claim::new(&key)).await.unwrap(), Decision::Replay(_)));
    assert_eq!(round_trips(), 1, "a replay");
}

#[tokio::test]
async fn cratestack_a_crashed_run_is_taken_over_after_its_lease_and_not_after_a_day() {
    let (store, _) = alone().await;
    let semel = Semel::new(store);
    let key = key("charge");
    let crashed = granted(&semel, Claim::new(&key).lease(Duration::from_millis(5))).await;
    let second = loop {
        match semel.claim(Claim::new(&key)).await.unwrap() {
            Decision::Run(permit) => break permit,
            Decision::Busy(_) => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((second.attempt(), second.fence() > crashed.fence()), (2, true));
    assert_eq!(crashed.complete(Outcome::success("late")).await.unwrap_err().kind(), ErrorKind::Lost);
    second.complete(Outcome::success("paid")).await.unwrap();
}

#[tokio::test]
async fn cratestack_the_schema_is_made_on_request_and_the_past_is_swept() {
    let url = empty_schema().await;
    migrate(&url).await.unwrap();
    let semel = Semel::builder(PostgresStore::connect(&url).await.unwrap())
        .retention(Duration::from_millis(1))
        .build()
        .unwrap();
    for _ in 0..10 {
        granted(&semel, Claim::new(&key("charge"))).await.complete(Outcome::success("paid")).await.unwrap();
    }
    let client = client(&url).await;
    let left =
        async || client.query_one("SELECT count(*) FROM semel_records", &[]).await.unwrap().get::<_, i64>(0);
    let mut removed = 0;
    while left().await > 0 {
        removed += semel.sweep(4).await.unwrap().removed;
    }
    assert_eq!(removed, 10);
}

#[tokio::test]
async fn tandem_identity_is_every_part_by_itself() {
    let (store, url) = alone().await;
    let semel = Semel::new(store);
    let keys = [
        Key::scoped(["org", "space"], "op", "k").unwrap(),
        Key::scoped(["orgspace"], "op", "k").unwrap(),
        Key::scoped(["org"], "op", "k").unwrap(),
        Key::new("op", "k").unwrap(),
        Key::scoped(["org", "space", "op"], "op", "k").unwrap(),
    ];
    for key in &keys {
        granted(&semel, Claim::new(key)).await.complete(Outcome::success("x")).await.unwrap();
    }
    let scopes = "SELECT count(DISTINCT scope), count(DISTINCT id) FROM semel_records";
    let row = client(&url).await.query_one(scopes, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (5, 5));
}

#[tokio::test]
async fn tandem_a_record_that_cannot_be_read_is_refused_and_stays() {
    let (store, url) = alone().await;
    let semel = Semel::builder(store).replays_kept(0, 0).build().unwrap();
    let key = key("charge");
    granted(&semel, Claim::new(&key)).await.complete(Outcome::success("x")).await.unwrap();
    let client = client(&url).await;
    client.batch_execute("UPDATE semel_records SET operation = E'a\\x01b'").await.unwrap();
    let error = semel.get(&key).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let error = semel.claim(Claim::new(&key)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let left = client.query_one("SELECT count(*) FROM semel_records", &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 1);
}
