//! What a cycle makes the server write: bytes of its log, and which indexes.

use std::time::Duration;

use semel::{Claim, Fingerprint, Key, Lapse, Outcome, Semel};
use semel_postgres::{PostgresStore, migrate};
use test_services::Postgres;
use tokio_postgres::Client;

use crate::server::{alone, client, granted, key};

/// Bytes of the log that a cycle of callers in batches may take: nine tenths of what it took when every complete wrote every
/// index. Whole pages, which the server logs after a checkpoint, are not in it.
const LOG_BYTES_MOST: i64 = 1_255;

/// Claims and completes new keys: so many callers, each so often.
async fn cycles(semel: &Semel, callers: usize, each: usize) {
    let callers = (0..callers).map(|_| {
        let semel = semel.clone();
        tokio::spawn(async move {
            for _ in 0..each {
                let key = key("charge");
                let claim = Claim::new(&key).fingerprint(Fingerprint::of_parts([key.name()]));
                let permit = granted(&semel, claim).await;
                permit.complete(Outcome::success(vec![b'{'; 150])).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

async fn end_of_log(client: &Client) -> i64 {
    let text = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    client.query_one(text, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cycle_logs_no_more_than_nine_tenths_of_what_it_did() {
    let server = Postgres::start_in_memory(&[("autovacuum", "off"), ("checkpoint_timeout", "1h")]).unwrap();
    migrate(&server.url()).await.unwrap();
    let store = PostgresStore::connect(&server.url()).await.unwrap();
    let semel = Semel::builder(store).replays_kept(0, 0).no_sweep().build().unwrap();
    let client = client(&server.url()).await;
    // The first change of a page after a checkpoint logs all of it.
    cycles(&semel, 200, 2).await;
    let before = end_of_log(&client).await;
    cycles(&semel, 200, 10).await;
    let bytes = (end_of_log(&client).await - before) / 2_000;
    assert!(bytes <= LOG_BYTES_MOST, "{bytes} bytes a cycle");
}

/// Rows that were updated, and those of them for which no index was written.
async fn updates(client: &Client, expected: i64) -> (i64, i64) {
    let text = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables \
                WHERE relid = 'semel_records'::regclass AND n_tup_upd >= $1";
    // Sessions report what they did a second late.
    for _ in 0..1_000 {
        if let Some(row) = client.query_opt(text, &[&expected]).await.unwrap() {
            return (row.get(0), row.get(1));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{expected} updates were not reported");
}

#[tokio::test]
async fn an_ordinary_complete_writes_no_index_and_one_under_hold_does() {
    let (store, url) = alone().await;
    let semel = Semel::builder(store).replays_kept(0, 0).no_sweep().build().unwrap();
    let client = client(&url).await;
    cycles(&semel, 1, 100).await;
    assert_eq!(updates(&client, 100).await, (100, 100));
    // The control: a record under `hold` is kept for ever until it is completed, and in another index than afterwards.
    for _ in 0..10 {
        let permit = granted(&semel, Claim::new(&key("charge")).lapse(Lapse::Hold)).await;
        permit.complete(Outcome::success("paid")).await.unwrap();
    }
    assert_eq!(updates(&client, 110).await, (110, 100));
}

/// For how many microseconds from its complete on a record is kept.
async fn kept_us(client: &Client, key: &Key) -> i64 {
    let text = "SELECT (extract(epoch FROM keep_until - since) * 1000000)::bigint FROM semel_records WHERE name = $1";
    client.query_one(text, &[&key.name()]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_record_is_kept_no_longer_than_a_256th_more_than_was_asked_for() {
    let (store, url) = alone().await;
    let semel = Semel::builder(store).replays_kept(0, 0).no_sweep().build().unwrap();
    let client = client(&url).await;
    // What is left of the lease is more than a 256th of an hour.
    let brief = key("charge");
    let permit = granted(&semel, Claim::new(&brief).retention(Duration::from_hours(1))).await;
    permit.complete(Outcome::success("paid")).await.unwrap();
    assert_eq!(kept_us(&client, &brief).await, 3_600_000_000);
    // A lease that ends before the complete: the record is kept from the complete on.
    let late = key("charge");
    let permit = granted(&semel, Claim::new(&late).lease(Duration::from_millis(1))).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    permit.complete(Outcome::success("paid")).await.unwrap();
    assert_eq!(kept_us(&client, &late).await, 86_400_000_000);
}
