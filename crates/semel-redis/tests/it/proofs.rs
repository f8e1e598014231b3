//! The proofs of the kit on real servers: histories, lost replies, kills under load, and sweepers among claimers.

use std::sync::Arc;
use std::time::Duration;

use semel::store::Store;
use semel_redis::RedisStore;
use semel_testkit::endurance::{Endurance, Ledger};
use semel_testkit::history::concurrent_history;
use semel_testkit::lossy::{LossyProxy, lost_at_random, lost_replies};
use semel_testkit::sweeping::sweep_while_claiming;
use test_services::{AppendFsync, Redis};

async fn clients(url: &str, count: usize) -> Vec<Arc<dyn Store>> {
    let mut clients: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..count {
        clients.push(Arc::new(RedisStore::connect(url).await.unwrap()));
    }
    clients
}

async fn histories(url: &str) {
    let clients = clients(url, 16).await;
    for seed in 1..=8 {
        let report = concurrent_history(&clients, seed, 1_000).await;
        assert!(report.is_linearizable(), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_of_one_server_are_linearizable() {
    histories(&test_services::redis_url().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_of_a_cluster_are_linearizable() {
    histories(&test_services::redis_cluster_url().unwrap()).await;
}

async fn lossy(server: &Redis) -> (Arc<dyn Store>, LossyProxy, Arc<dyn Store>) {
    let direct = Arc::new(RedisStore::connect(&server.url()).await.unwrap());
    let proxy = LossyProxy::start(([127, 0, 0, 1], server.port()).into()).await.unwrap();
    let through = RedisStore::connect(&format!("redis://{}", proxy.address())).await.unwrap();
    (direct, proxy, Arc::new(through))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_replies_are_harmless() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let (direct, proxy, through) = lossy(&server).await;
    let report = lost_replies(&through, &direct, &proxy).await.unwrap();
    assert!(report.are_harmless(), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_lost_at_random_lose_nothing() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let (direct, proxy, through) = lossy(&server).await;
    let losses = lost_at_random(&through, &direct, &proxy, 1, (2_000, 0.05)).await.unwrap();
    assert!(losses.are_none() && losses.acknowledged >= 2_000, "{losses}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_under_load_loses_nothing() {
    let mut server = Redis::start(AppendFsync::Always).unwrap();
    let store: Arc<dyn Store> = Arc::new(RedisStore::connect(&server.url()).await.unwrap());
    let mut ledger = Ledger::default();
    for round in 1..=4_u64 {
        let load = Endurance::go_on(ledger, &store, round, 8).unwrap();
        assert!(load.until_acknowledged(500, Duration::from_secs(30)).await);
        server.kill().unwrap();
        server.resume().unwrap();
        let again = load.until_acknowledged(load.acknowledged() + 200, Duration::from_secs(30)).await;
        ledger = load.stop().await;
        let losses = ledger.verify(&store).await.unwrap();
        assert!(losses.are_none() && again, "{losses}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sweepers_and_claimers_get_along() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let stores = clients(&server.url(), 10).await;
    let report =
        sweep_while_claiming(&stores[..2], &stores[2..], 20_000, Duration::from_secs(1)).await.unwrap();
    assert!(report.is_clean(), "{report}");
}
