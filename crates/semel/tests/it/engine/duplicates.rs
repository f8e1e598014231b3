//! Counts of duplicates: no write when they happen, exact in the end.

use std::sync::Arc;
use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Claim, ErrorKind, Semel};
use semel_testkit::{Call, FaultyStore, PausingStore, Point};

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

#[test]
fn duplicates_that_many_threads_saw_are_all_counted() {
    let world = World::new();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime().block_on(async { world.run(&key("1")).await.complete(outcome("paid")).await.unwrap() });
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                let claim = world.semel.claim(Claim::new(&key("1")));
                assert_eq!(runtime().block_on(claim).unwrap().as_str(), "replay");
            });
        }
    });
    runtime().block_on(async {
        world.semel.flush().await.unwrap();
        assert_eq!(world.semel.get(&key("1")).await.unwrap().unwrap().duplicates.count, 24);
    });
}

/// An engine whose calls the test can stop, after `records` were completed and each was asked for once more.
async fn replayed_once(records: usize, bytes_a_second: u64) -> (Semel, PausingStore) {
    let pausing = PausingStore::new(Arc::new(MemoryStore::new()));
    let build = Semel::builder(pausing.clone()).no_sweep().counts_bytes_a_second(bytes_a_second);
    let semel = build.build().unwrap();
    for name in 0..records {
        let claim = || Claim::new(&key(&name.to_string()));
        drop(semel.record_once(claim(), outcome("paid")).await.unwrap());
        assert_eq!(semel.claim(claim()).await.unwrap().as_str(), "replay");
    }
    (semel, pausing)
}

async fn counted(semel: &Semel, records: usize) -> u64 {
    let mut sum = 0;
    for name in 0..records {
        sum += semel.get(&key(&name.to_string())).await.unwrap().unwrap().duplicates.count;
    }
    sum
}

#[tokio::test(start_paused = true)]
async fn a_record_is_written_at_most_once_a_minute_and_nothing_is_lost_meanwhile() {
    let (semel, _) = replayed_once(1, u64::MAX).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(counted(&semel, 1).await, 1);
    // Another record is written in between: what was written lately has to be remembered past that.
    drop(semel.record_once(Claim::new(&key("other")), outcome("paid")).await.unwrap());
    assert_eq!(semel.claim(Claim::new(&key("other"))).await.unwrap().as_str(), "replay");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(semel.claim(Claim::new(&key("0"))).await.unwrap().as_str(), "replay");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(counted(&semel, 1).await, 1, "it was written a moment ago");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(counted(&semel, 1).await, 2);
}

#[tokio::test(start_paused = true)]
async fn counts_that_were_refused_are_written_seconds_later_and_not_after_a_minute() {
    for point in [Point::BeforeLoad, Point::BeforeSwap] {
        let (semel, pausing) = replayed_once(20, u64::MAX).await;
        let stop = pausing.stop_at(point);
        stop.reached().await;
        stop.refuse();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(counted(&semel, 20).await, 20, "{point:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn counts_behind_a_refused_batch_are_not_lost() {
    let (semel, pausing) = replayed_once(600, u64::MAX).await;
    let stop = pausing.stop_at(Point::BeforeSwap);
    let flushing = semel.clone();
    let flushing = tokio::spawn(async move { flushing.flush().await });
    stop.reached().await;
    stop.refuse();
    assert_eq!(flushing.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    semel.flush().await.unwrap();
    assert_eq!(counted(&semel, 400).await, 400);
}

#[tokio::test(start_paused = true)]
async fn counts_are_written_within_their_budget_and_a_flush_writes_the_rest() {
    let (semel, _) = replayed_once(400, 1).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(counted(&semel, 400).await, 1, "one record is more than half a minute's bytes");
    semel.flush().await.unwrap();
    assert_eq!(counted(&semel, 400).await, 400);
}

#[tokio::test(start_paused = true)]
async fn without_a_budget_counts_are_written_by_a_flush_and_by_nothing_else() {
    let (semel, pausing) = replayed_once(3, 0).await;
    let before = pausing.count(Call::Swap);
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(pausing.count(Call::Swap), before);
    semel.flush().await.unwrap();
    assert_eq!(counted(&semel, 3).await, 3);
}

#[tokio::test(start_paused = true)]
async fn large_records_are_seldom_written_for_their_counts() {
    const LARGE: usize = 64 << 10;
    let world = World::new();
    for name in 0..200 {
        let large = semel::Outcome::success(vec![0; LARGE]);
        world.run(&key(&name.to_string())).await.complete(large).await.unwrap();
        assert_eq!(world.semel.claim(Claim::new(&key(&name.to_string()))).await.unwrap().as_str(), "replay");
    }
    let counted = async || {
        let mut counted = 0;
        for name in 0..200 {
            counted += world.semel.get(&key(&name.to_string())).await.unwrap().unwrap().duplicates.count;
        }
        counted
    };
    tokio::time::sleep(Duration::from_secs(10)).await;
    // 256 KiB a second are four of them, and one second's worth is there from the start.
    let written = counted().await;
    assert!((4..=48).contains(&written), "{written} were written");
    world.semel.flush().await.unwrap();
    assert_eq!(counted().await, 200, "after {written}");
}

#[test]
fn an_engine_whose_first_runtime_stands_still_can_be_closed_on_another() {
    let world = World::new();
    let runtime = |is_paused| {
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(is_paused).build().unwrap()
    };
    let stands_still = runtime(false);
    stands_still.block_on(async { drop(world.run(&key("1")).await) });
    runtime(true).block_on(world.semel.close()).unwrap();
}
