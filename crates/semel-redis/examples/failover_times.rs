//! How long no claim is acknowledged after a master is gone.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a measurement that cannot go on has no figure to show"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use semel::{Claim, Decision, Semel};
use semel_redis::RedisStore;
use semel_testkit::sample;
use test_services::{AppendFsync, Redis, RedisCluster, Sentinel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Claims one key after the other until it is stopped, and returns the moments of the grants.
fn claim_until(semel: Semel, stop: Arc<AtomicBool>) -> JoinHandle<Vec<Instant>> {
    tokio::spawn(async move {
        let mut granted = Vec::new();
        while !stop.load(Ordering::Acquire) {
            let key = sample::key("failover").unwrap();
            match semel.claim(Claim::new(&key)).await {
                Ok(Decision::Run(_)) => granted.push(Instant::now()),
                _ => sleep(Duration::from_millis(5)).await,
            }
        }
        granted
    })
}

/// From the loss until every caller was granted a key again. Callers that wait for a lost reply are among them.
async fn time_to_service(url: &str, lose: impl FnOnce()) -> (Duration, Duration) {
    let semel = Semel::builder(RedisStore::connect(url).await.unwrap()).no_sweep().build().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..8).map(|_| claim_until(semel.clone(), Arc::clone(&stop))).collect();
    sleep(Duration::from_millis(500)).await;
    let lost_at = Instant::now();
    lose();
    sleep(Duration::from_secs(20)).await;
    stop.store(true, Ordering::Release);
    let mut first: Vec<Duration> = Vec::new();
    for caller in callers {
        let granted = caller.await.unwrap();
        // The gap that began around the loss.
        let gap = granted.windows(2).max_by_key(|two| two[1] - two[0]).unwrap();
        first.push(gap[1].saturating_duration_since(lost_at));
    }
    first.sort_unstable();
    (first[0], first[7])
}

async fn with_sentinel(settings: &[(&str, &str)], lose: impl FnOnce(&mut Redis)) -> (Duration, Duration) {
    let mut master = Redis::start_with(settings).unwrap();
    let _replica = master.replica().unwrap();
    let sentinel = Sentinel::start(&master).unwrap();
    time_to_service(&sentinel.url(), || lose(&mut master)).await
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    for _ in 0..3 {
        let killed = with_sentinel(&[], |master| master.kill().unwrap()).await;
        println!(
            "Sentinel (down after 1 s), master killed: first caller {:?}, last {:?}",
            killed.0, killed.1
        );
        let frozen = with_sentinel(&[], |master| master.freeze().unwrap()).await;
        println!(
            "Sentinel (down after 1 s), master silent: first caller {:?}, last {:?}",
            frozen.0, frozen.1
        );
        let mut cluster = RedisCluster::start(AppendFsync::Always).unwrap();
        let killed = time_to_service(&cluster.url(), || cluster.kill_master(0).unwrap()).await;
        println!(
            "Cluster (node timeout 2 s), master killed: first caller {:?}, last {:?}",
            killed.0, killed.1
        );
        let cluster = RedisCluster::start(AppendFsync::Always).unwrap();
        let frozen =
            time_to_service(&cluster.url(), || assert_ne!(cluster.freeze_master(0).unwrap(), 0)).await;
        println!(
            "Cluster (node timeout 2 s), master silent: first caller {:?}, last {:?}",
            frozen.0, frozen.1
        );
    }
}
