//! Histories of many clients: a store that keeps its promises passes, and reads of yesterday or blind writes do not.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use semel::store::{MemoryStore, Store};
use semel_testkit::history::{ReadsElsewhere, Report, concurrent_history};
use semel_testkit::{Call, Fault, FaultyStore};

use crate::wrong::{Blind, Lagging};

const CLIENTS: usize = 16;
const OPERATIONS: usize = 1_000;

fn clients(store: &Arc<dyn Store>) -> Vec<Arc<dyn Store>> {
    (0..CLIENTS).map(|_| Arc::clone(store)).collect()
}

/// The first history of a few that shows what is wrong.
async fn found_out(store: Arc<dyn Store>) -> Option<Report> {
    for seed in 1..=5 {
        let report = concurrent_history(&clients(&store), seed, OPERATIONS).await;
        assert!(report.errors.is_empty(), "{report}");
        if report.is_violation() {
            return Some(report);
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_histories_of_the_memory_store_are_linearizable() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let store = clients(&store);
    let (mut told, mut reruns) = (HashSet::new(), 0);
    for seed in 1..=10 {
        let report = concurrent_history(&store, seed, OPERATIONS).await;
        println!("{report}");
        assert!(report.is_linearizable(), "{report}");
        assert_eq!(report.answered, OPERATIONS);
        told.extend(report.told.into_keys());
        reruns += report.reruns;
    }
    // Histories in which nothing happens prove nothing.
    for word in ["run", "replay", "busy", "mismatch", "held", "recorded", "got", "got nothing"] {
        assert!(told.contains(word), "nobody was told {word}");
    }
    assert!(reruns > 0);
}

/// A network between clients and store, so that asks of one key are on their way at the same time.
fn far_away(store: Arc<dyn Store>, lost_percent: u32) -> Arc<dyn Store> {
    Arc::new(FaultyStore::new(store, move |call| {
        let lost = call == Call::Swap && rand::random_ratio(lost_percent, 100);
        let way = Duration::from_micros(rand::random_range(50..900));
        if lost { Fault::LoseReply(way) } else { Fault::Delay(way) }
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_far_away_is_linearizable_though_asks_overlap() {
    let store = clients(&far_away(Arc::new(MemoryStore::new()), 0));
    let report = concurrent_history(&store, 1, OPERATIONS).await;
    println!("{report}");
    assert!(report.is_linearizable(), "{report}");
    assert!(report.overlapping > OPERATIONS / 4, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_whose_replies_are_lost_now_and_then_is_linearizable() {
    let store = clients(&far_away(Arc::new(MemoryStore::new()), 3));
    for seed in 1..=3 {
        let report = concurrent_history(&store, seed, OPERATIONS).await;
        println!("{report}");
        assert!(report.is_linearizable(), "{report}");
        assert!(report.lost > 0, "{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_from_a_copy_that_lags_behind_are_a_violation() {
    let report = found_out(Arc::new(Lagging::new(Duration::from_millis(1)))).await.unwrap();
    println!("{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_write_in_a_hundred_that_compares_nothing_is_a_violation() {
    let report = found_out(far_away(Arc::new(Blind::one_in(100)), 0)).await.unwrap();
    println!("{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_from_a_copy_that_never_hears_of_anything_are_a_violation() {
    let (store, copy) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    assert!(found_out(Arc::new(ReadsElsewhere::new(store, copy))).await.is_some());
}
