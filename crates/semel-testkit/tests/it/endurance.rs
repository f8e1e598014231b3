//! The load that outlives its store: nothing is lost by a store that keeps its word, and whatever is lost is found.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use semel::store::{MemoryStore, Store};
use semel_testkit::endurance::{Endurance, Losses};
use semel_testkit::{Fault, FaultyStore};

use crate::wrong::{Dropping, Mistaken, Taken};

const PATIENCE: Duration = Duration::from_secs(20);
const CALLERS: usize = 8;

/// What is found after so many answers through one way to the store, when it is looked at through another.
async fn endured(through: Arc<dyn Store>, direct: Arc<dyn Store>, answers: u64) -> Losses {
    let load = Endurance::start(&through, 7, CALLERS).unwrap();
    assert!(load.until_acknowledged(answers, PATIENCE).await, "only {} answers", load.acknowledged());
    let losses = load.stop().await.verify(&direct).await.unwrap();
    println!("{losses}");
    assert!(losses.acknowledged >= answers);
    losses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_keeps_its_word_loses_nothing() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let losses = endured(Arc::clone(&store), store, 20_000).await;
    assert!(losses.are_none(), "{losses}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_can_be_held_against_the_store_again_and_go_on() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut ledger = Endurance::start(&store, 1, CALLERS).unwrap().stop().await;
    for round in 2..5 {
        let load = Endurance::go_on(ledger, &store, round, CALLERS).unwrap();
        assert!(load.until_acknowledged(500, PATIENCE).await);
        ledger = load.stop().await;
        for _ in 0..2 {
            let losses = ledger.verify(&store).await.unwrap();
            assert!(losses.are_none(), "{losses}");
        }
    }
    assert!(ledger.acknowledged() >= 1_500 && ledger.keys() > 500);
}

/// A store that can be away: while it is, half of what is asked arrives and is not answered.
fn away_at_times(store: Arc<dyn Store>, away: Arc<AtomicBool>) -> Arc<dyn Store> {
    Arc::new(FaultyStore::new(store, move |_| match (away.load(Ordering::Relaxed), rand::random()) {
        (false, _) => Fault::None,
        (true, false) => Fault::Refuse,
        (true, true) => Fault::LoseReply(Duration::ZERO),
    }))
}

async fn with_outages(through: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>) -> Losses {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let away = Arc::new(AtomicBool::new(false));
    let faulty = through(away_at_times(Arc::clone(&store), Arc::clone(&away)));
    let load = Endurance::start(&faulty, 3, CALLERS).unwrap();
    for outage in 1..=5 {
        assert!(load.until_acknowledged(outage * 500, PATIENCE).await);
        away.store(true, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(30)).await;
        away.store(false, Ordering::Relaxed);
    }
    let losses = load.stop().await.verify(&store).await.unwrap();
    println!("{losses}");
    losses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outages_lose_nothing_and_wedge_nothing() {
    let losses = with_outages(|store| store).await;
    assert!(losses.are_none(), "{losses}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_that_is_taken_for_nothing_is_found_out() {
    let losses = with_outages(|store| Arc::new(Mistaken::new(store, Taken::ForNothing))).await;
    assert!(losses.wedged > 0, "{losses}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_acknowledged_write_in_five_hundred_that_is_not_made_is_found() {
    let store: Arc<dyn Store> = Arc::new(Dropping::one_in(500));
    let losses = endured(Arc::clone(&store), store, 5_000).await;
    assert!(losses.lost > 0, "{losses}");
}
