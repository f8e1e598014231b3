//! Counts of duplicates: no write when they happen, exact in the end.

use std::sync::Arc;
use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Claim, Semel};
use semel_testkit::{Call, FaultyStore};

use crate::world::{LEASE, RETENTION, Remote, World, granted, key, outcome};

#[tokio::test(start_paused = true)]
async fn they_are_counted_exactly_a_few_seconds_late() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    for _ in 0..7 {
        assert_eq!(world.semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy");
    }
    permit.complete(outcome("paid")).await.unwrap();
    let another = world.another();
    for _ in 0..5 {
        assert_eq!(another.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
    }
    assert_eq!(world.semel.get(&key("1")).await.unwrap().unwrap().duplicates.count, 0);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let record = world.semel.get(&key("1")).await.unwrap().unwrap();
    assert_eq!(record.duplicates.count, 12);
    assert!(record.duplicates.last_seen_at.is_some());
}

#[tokio::test]
async fn counting_them_moves_neither_lease_nor_retention() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    world.clock.advance(LEASE / 2);
    drop(world.semel.claim(Claim::new(&key("1"))).await.unwrap());
    world.semel.flush().await.unwrap();
    world.clock.advance(LEASE / 2);
    let next = world.run(&key("1")).await;
    assert!(next.fence() > permit.fence());
    next.complete(outcome("paid")).await.unwrap();
    world.clock.advance(RETENTION / 2);
    drop(world.semel.claim(Claim::new(&key("1"))).await.unwrap());
    world.semel.flush().await.unwrap();
    world.clock.advance(RETENTION / 2);
    assert!(world.semel.get(&key("1")).await.unwrap().is_none());
    assert_eq!(world.semel.sweep(10).await.unwrap().removed, 1);
}

#[tokio::test(start_paused = true)]
async fn replays_cost_no_write_of_their_own() {
    let writes = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let seen = Arc::clone(&writes);
    let store = FaultyStore::new(Arc::new(MemoryStore::new()), move |call| {
        if call == Call::Swap {
            seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        semel_testkit::Fault::Delay(Duration::from_millis(1))
    });
    let semel = Semel::new(Remote::new(Arc::new(store)));
    granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).complete(outcome("paid")).await.unwrap();
    let before = writes.load(std::sync::atomic::Ordering::SeqCst);
    for _ in 0..100 {
        assert_eq!(semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
    }
    assert_eq!(writes.load(std::sync::atomic::Ordering::SeqCst), before, "kept in memory, and counted there");
    semel.flush().await.unwrap();
    assert_eq!(writes.load(std::sync::atomic::Ordering::SeqCst), before + 1, "one write for a hundred");
    assert_eq!(semel.get(&key("1")).await.unwrap().unwrap().duplicates.count, 100);
}
