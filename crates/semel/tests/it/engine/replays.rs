//! Done records kept in memory never outlive their retention and never hide a mismatch.

use std::sync::Arc;
use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Claim, Decision, Outcome, Semel, SemelBuilder};
use semel_testkit::{Fault, FaultyStore, ManualClock};

use crate::tokio_clock::TokioClock;
use crate::world::{Remote, granted, key, outcome, replayed, request};

const RETENTION: Duration = Duration::from_mins(10);

/// An engine behind a network that can be cut, so that it shows what is kept in memory.
fn engine(choose: impl FnOnce(SemelBuilder) -> SemelBuilder) -> (Semel, Arc<std::sync::atomic::AtomicBool>) {
    let cut = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_cut = Arc::clone(&cut);
    let store = Arc::new(MemoryStore::builder().clock(TokioClock::start()).build());
    let store = FaultyStore::new(store, move |_| {
        if is_cut.load(std::sync::atomic::Ordering::SeqCst) {
            Fault::Refuse
        } else {
            Fault::Delay(Duration::from_millis(1))
        }
    });
    let store = Remote::new(Arc::new(store));
    (choose(Semel::builder(store).retention(RETENTION)).build().unwrap(), cut)
}

async fn complete(semel: &Semel, name: &str) {
    let claim = Claim::new(&key(name)).fingerprint(request("first"));
    granted(semel.claim(claim).await.unwrap()).complete(outcome(name)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_kept_record_is_replayed_without_the_store() {
    let (semel, cut) = engine(|builder| builder);
    complete(&semel, "1").await;
    cut.store(true, std::sync::atomic::Ordering::SeqCst);
    let claim = Claim::new(&key("1")).fingerprint(request("first"));
    assert_eq!(replayed(semel.claim(claim).await.unwrap()), "1");
}

#[tokio::test(start_paused = true)]
async fn a_kept_record_is_gone_with_its_retention() {
    let (semel, _) = engine(|builder| builder);
    complete(&semel, "1").await;
    tokio::time::sleep(RETENTION - Duration::from_secs(1)).await;
    assert!(matches!(semel.claim(Claim::new(&key("1"))).await.unwrap(), Decision::Replay(_)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_kept_record_does_not_hide_a_mismatch() {
    let (semel, _) = engine(|builder| builder);
    complete(&semel, "1").await;
    let other = Claim::new(&key("1")).fingerprint(request("other"));
    assert!(matches!(semel.claim(other).await.unwrap(), Decision::Mismatch(_)));
    assert_eq!(semel.get(&key("1")).await.unwrap().unwrap().mismatches.count, 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_are_kept_than_was_said() {
    for (records_max, bytes_max, expected) in
        [(0, 0, 0..=0), (0, 1 << 20, 0..=0), (16, 1 << 20, 1..=16), (1_000, 16, 0..=0)]
    {
        let (semel, cut) = engine(|builder| builder.replays_kept(records_max, bytes_max));
        for name in 0..200 {
            complete(&semel, &name.to_string()).await;
        }
        cut.store(true, std::sync::atomic::Ordering::SeqCst);
        let mut kept = 0;
        for name in 0..200 {
            kept += u32::from(semel.claim(Claim::new(&key(&name.to_string()))).await.is_ok());
        }
        assert!(expected.contains(&kept), "{kept} are kept");
    }
}

#[tokio::test(start_paused = true)]
async fn the_bound_counts_details_and_references_too() {
    const LARGE: usize = 64 << 10;
    let text = "x".repeat(LARGE);
    let large = [
        outcome("paid").details(&serde_json::Value::String(text.clone())),
        outcome("paid").reference("charge", text.as_str()),
        Outcome::success(text.clone()),
    ];
    for outcome in large {
        // Room for eight of them, half of it a shard's share of sixteen.
        let (semel, cut) = engine(|builder| builder.replays_kept(1_000, 16 * (LARGE + LARGE / 2)));
        for name in 0..64 {
            let claim = Claim::new(&key(&name.to_string()));
            granted(semel.claim(claim).await.unwrap()).complete(outcome.clone()).await.unwrap();
        }
        cut.store(true, std::sync::atomic::Ordering::SeqCst);
        let mut kept = 0;
        for name in 0..64 {
            kept += u32::from(semel.claim(Claim::new(&key(&name.to_string()))).await.is_ok());
        }
        assert!((1..=16).contains(&kept), "{kept} of {LARGE} bytes each are kept");
    }
}

#[tokio::test]
async fn a_record_that_was_loaded_is_kept_no_longer_than_one_that_was_swapped() {
    // After a replay from a store that answers at once, the next claim looks first.
    let clock = ManualClock::at(1_000_000);
    let store = MemoryStore::builder().clock(clock.clone()).build();
    let semel = Semel::builder(store).retention(RETENTION).build().unwrap();
    complete(&semel, "1").await;
    for _ in 0..3 {
        assert_eq!(replayed(semel.claim(Claim::new(&key("1"))).await.unwrap()), "1");
    }
    clock.advance(RETENTION);
    assert_eq!(granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_whose_clock_is_set_by_hand_is_asked_every_time() {
    let clock = ManualClock::at(1_000_000);
    let store = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
    // Each answer takes a while, as from another machine; that alone must not have it kept.
    let store = FaultyStore::new(store, |_| Fault::Delay(Duration::from_millis(1)));
    let semel = Semel::builder(store).retention(RETENTION).build().unwrap();
    complete(&semel, "1").await;
    assert_eq!(replayed(semel.claim(Claim::new(&key("1"))).await.unwrap()), "1");
    clock.advance(RETENTION);
    assert!(semel.get(&key("1")).await.unwrap().is_none());
    assert_eq!(granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn replays_from_memory_are_counted_like_any_other() {
    let (semel, cut) = engine(|builder| builder);
    complete(&semel, "1").await;
    cut.store(true, std::sync::atomic::Ordering::SeqCst);
    for count in 1..=3 {
        assert_eq!(semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
        assert_eq!(semel.stats().replay, count);
    }
}
