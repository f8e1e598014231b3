//! The proofs of the kit on a real server: histories, lost replies, a load, and sweepers among claimers.

use std::sync::Arc;
use std::time::Duration;

use semel::store::Store;
use semel_postgres::{Config, PostgresStore};
use semel_testkit::endurance::{Endurance, Ledger};
use semel_testkit::history::{ReadsElsewhere, concurrent_history};
use semel_testkit::lossy::{LossyProxy, lost_at_random, lost_replies};
use semel_testkit::sweeping::sweep_while_claiming;
use test_services::{Postgres, Standby};

use crate::server::{open, url};

async fn client(url: &str) -> Arc<dyn Store> {
    Arc::new(PostgresStore::open(Config::from_url(url).unwrap().swap_connections(1)).await.unwrap())
}

async fn clients(count: usize) -> Vec<Arc<dyn Store>> {
    open().await;
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(client(&url()).await);
    }
    clients
}

/// A few of them; `cargo xtask prove histories` makes many.
const HISTORIES: u64 = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_histories_are_linearizable() {
    let clients = clients(16).await;
    for seed in 1..=HISTORIES {
        let report = concurrent_history(&clients, seed, 1_000).await;
        assert!(report.is_linearizable(), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_from_a_standby_are_caught() {
    // The control: a standby shows what was, also to whoever has heard what is.
    let primary = Postgres::start().unwrap();
    semel_postgres::migrate(&primary.url()).await.unwrap();
    let standby = primary.standby(Standby::Asynchronous).unwrap();
    let lagging = "ALTER SYSTEM SET recovery_min_apply_delay = '50ms'";
    crate::server::client(&standby.url()).await.batch_execute(lagging).await.unwrap();
    crate::server::client(&standby.url()).await.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let reads = Config::from_url(&standby.url()).unwrap().or_standby();
    let reads: Arc<dyn Store> = Arc::new(PostgresStore::open(reads).await.unwrap());
    let mut clients: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..16 {
        let writes = client(&primary.url()).await;
        clients.push(Arc::new(ReadsElsewhere::new(writes, Arc::clone(&reads))));
    }
    for seed in 1..=20 {
        if concurrent_history(&clients, seed, 1_000).await.is_violation() {
            return;
        }
    }
    panic!("20 histories with reads from a standby were all found in order");
}

fn behind(url: &str, address: std::net::SocketAddr) -> String {
    let (head, rest) = url.split_once('@').unwrap();
    let (_, tail) = rest.split_once('/').unwrap();
    format!("{head}@{address}/{tail}")
}

async fn lossy() -> (Arc<dyn Store>, LossyProxy, Arc<dyn Store>) {
    let direct: Arc<dyn Store> = Arc::new(open().await);
    let url = url();
    let port: u16 =
        url.split_once('@').unwrap().1.split_once('/').unwrap().0.split_once(':').unwrap().1.parse().unwrap();
    let proxy = LossyProxy::start(([127, 0, 0, 1], port).into()).await.unwrap();
    let through: Arc<dyn Store> =
        Arc::new(PostgresStore::connect(&behind(&url, proxy.address())).await.unwrap());
    (direct, proxy, through)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_replies_are_harmless() {
    let (direct, proxy, through) = lossy().await;
    let report = lost_replies(&through, &direct, &proxy).await.unwrap();
    assert!(report.are_harmless(), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_with_lost_replies_are_linearizable() {
    let (_direct, proxy, _through) = lossy().await;
    let url = behind(&url(), proxy.address());
    let mut clients = Vec::new();
    for _ in 0..16 {
        clients.push(client(&url).await);
    }
    for seed in 1..=3 {
        proxy.lose_answers(0.02, seed);
        let report = concurrent_history(&clients, seed, 1_000).await;
        assert!(report.is_linearizable() && report.lost > 0, "{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_lost_at_random_lose_nothing() {
    let (direct, proxy, through) = lossy().await;
    let losses = lost_at_random(&through, &direct, &proxy, 1, (2_000, 0.05)).await.unwrap();
    assert!(losses.are_none() && losses.acknowledged >= 2_000, "{losses}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_under_load_loses_nothing() {
    let mut server = Postgres::start().unwrap();
    semel_postgres::migrate(&server.url()).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(&server.url()).await.unwrap());
    let mut ledger = Ledger::default();
    for round in 1..=4_u64 {
        let load = Endurance::go_on(ledger, &store, round, 8).unwrap();
        assert!(load.until_acknowledged(500, Duration::from_secs(30)).await);
        if round % 2 == 0 {
            server.kill().unwrap();
        } else {
            server.stop_immediately().unwrap();
        }
        server.resume().unwrap();
        let again = load.until_acknowledged(load.acknowledged() + 200, Duration::from_secs(30)).await;
        ledger = load.stop().await;
        let losses = ledger.verify(&store).await.unwrap();
        assert!(losses.are_none() && again, "{losses}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sweepers_and_claimers_get_along() {
    let server = Postgres::start().unwrap();
    semel_postgres::migrate(&server.url()).await.unwrap();
    let mut stores = Vec::new();
    for _ in 0..10 {
        stores.push(client(&server.url()).await);
    }
    let report =
        sweep_while_claiming(&stores[..2], &stores[2..], 20_000, Duration::from_secs(1)).await.unwrap();
    assert!(report.is_clean(), "{report}");
}
