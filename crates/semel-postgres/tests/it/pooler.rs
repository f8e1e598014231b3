//! `PgBouncer` in between: semel keeps its promises and leaves nothing behind in sessions that others use next.

use semel::{Claim, Decision, Outcome, Semel};
use semel_postgres::{PostgresStore, migrate};
use test_services::{PgBouncer, PoolMode, Postgres};
use tokio_postgres::SimpleQueryMessage;

use crate::server::{client, granted, key};

const SETTINGS: [&str; 6] =
    ["enable_seqscan", "statement_timeout", "plan_cache_mode", "jit", "client_min_messages", "lock_timeout"];

/// What another application finds in the sessions of the pooler: settings, prepared statements, locks, channels.
async fn left_behind(url: &str) -> Vec<String> {
    let client = client(url).await;
    let mut found = Vec::new();
    for text in SETTINGS.map(|name| format!("SHOW {name}")).into_iter().chain([
        "SELECT count(*) FROM pg_prepared_statements".to_owned(),
        "SELECT count(*) FROM pg_listening_channels()".to_owned(),
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'".to_owned(),
    ]) {
        // A transaction, so that every session of the pool is likely to be met.
        for message in client.simple_query(&text).await.unwrap() {
            if let SimpleQueryMessage::Row(row) = message {
                found.push(format!("{text}: {:?}", row.get(0)));
            }
        }
    }
    found
}

async fn works_through(mode: PoolMode, settings: &[(&str, &str)]) {
    let server = Postgres::start_in_memory(&[]).unwrap();
    let pooler = PgBouncer::start_with(&server, mode, settings).unwrap();
    let before = left_behind(&pooler.url()).await;
    migrate(&pooler.url()).await.unwrap();
    let store = PostgresStore::connect(&pooler.url()).await.unwrap();
    assert!(
        store.check().await.unwrap().iter().all(|finding| finding.verdict == semel::store::Verdict::Kept)
    );
    let semel = Semel::builder(store.clone()).replays_kept(0, 0).build().unwrap();
    let wake_ups = store.wake_ups(&semel);
    let claims = (0..200).map(|number| {
        let semel = semel.clone();
        tokio::spawn(async move {
            let key = semel::Key::new("charge", &format!("order-{number}")).unwrap();
            let permit = granted(&semel, Claim::new(&key)).await;
            permit.complete(Outcome::success("ch_1")).await.unwrap();
            let replay = semel.claim(Claim::new(&key)).await.unwrap();
            assert!(matches!(replay, Decision::Replay(_)), "{replay:?}");
        })
    });
    for claim in claims.collect::<Vec<_>>() {
        claim.await.unwrap();
    }
    // A caller that waits is woken, by polling if nothing can be listened for.
    let key = key("charge");
    let permit = granted(&semel, Claim::new(&key)).await;
    let waiting = tokio::spawn({
        let (semel, key) = (semel.clone(), key.clone());
        async move { semel.claim_or_wait(Claim::new(&key), std::time::Duration::from_secs(20)).await }
    });
    permit.complete(Outcome::success("ch_2")).await.unwrap();
    assert!(matches!(waiting.await.unwrap().unwrap(), Decision::Replay(_)));
    semel.sweep(100).await.unwrap();
    drop(wake_ups);
    semel.close().await.unwrap();
    drop((semel, store));
    for _ in 0..8 {
        assert_eq!(left_behind(&pooler.url()).await, before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_pooling_works_and_nothing_is_left_behind() {
    works_through(PoolMode::Transaction, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_pooling_works_where_the_pooler_swallows_startup_options() {
    works_through(PoolMode::Transaction, &[("ignore_startup_parameters", "options,extra_float_digits")])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_pooling_works_and_nothing_is_left_behind() {
    works_through(PoolMode::Session, &[("default_pool_size", "20")]).await;
}
