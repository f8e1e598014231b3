//! The engine sweeps by itself: every round is reported, errors do not end it, and it outlives its runtime.

use std::sync::Arc;
use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Claim, ErrorKind, Semel};
use semel_testkit::{Fault, FaultyStore, ManualClock};

use crate::world::{RETENTION, World, granted, key, outcome};

const EVERY: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn every_round_is_reported_and_only_what_is_past_its_time_goes() {
    let world = World::with(|builder| builder.sweep_every(EVERY).sweep_batch(1_000));
    for name in 0..2_500 {
        world.run(&key(&name.to_string())).await.complete(outcome("paid")).await.unwrap();
    }
    world.clock.advance(RETENTION / 2);
    let held = world.run(&key("later")).await;
    held.complete(outcome("paid")).await.unwrap();
    let mut reports = world.semel.sweep_reports();
    reports.changed().await.unwrap();
    let report = reports.borrow_and_update().clone();
    assert_eq!((report.round, report.removed), (1, 0));
    world.clock.advance(RETENTION / 2);
    reports.changed().await.unwrap();
    let report = reports.borrow_and_update().clone();
    assert_eq!((report.round, report.removed, report.batches), (2, 2_500, 3));
    assert_eq!(report.error, None);
    assert_eq!(world.semel.stats().swept, 2_500);
    assert!(world.semel.get(&key("later")).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_failed_round_is_reported_and_the_next_one_tries_again() {
    let clock = ManualClock::at(1_000_000);
    let store = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
    let direct = Semel::builder_shared(store.clone()).no_sweep().build().unwrap();
    granted(direct.claim(Claim::new(&key("1"))).await.unwrap());
    clock.advance(RETENTION * 2);
    let semel = Semel::new(FaultyStore::scripted(store, [Fault::Refuse]));
    let mut reports = semel.sweep_reports();
    reports.changed().await.unwrap();
    assert!(reports.borrow_and_update().error.is_some());
    reports.changed().await.unwrap();
    let report = reports.borrow_and_update().clone();
    assert_eq!((report.removed, report.error), (1, None));
}

#[tokio::test(start_paused = true)]
async fn a_round_that_fails_half_way_reports_what_it_removed_before() {
    let clock = ManualClock::at(1_000_000);
    let store = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
    let direct = Semel::builder_shared(store.clone()).no_sweep().build().unwrap();
    for name in ["1", "2", "3"] {
        granted(direct.claim(Claim::new(&key(name))).await.unwrap());
    }
    clock.advance(RETENTION * 2);
    let store = FaultyStore::scripted(store, [Fault::None, Fault::Refuse]);
    let semel = Semel::builder(store).sweep_batch(1).build().unwrap();
    let mut reports = semel.sweep_reports();
    reports.changed().await.unwrap();
    let report = reports.borrow_and_update().clone();
    assert_eq!((report.removed, report.batches, report.error.is_some()), (1, 1, true));
    reports.changed().await.unwrap();
    assert_eq!(reports.borrow_and_update().removed, 2);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_closed_or_told_not_to_sweeps_no_more() {
    for is_closed in [true, false] {
        let world = World::with(|builder| if is_closed { builder } else { builder.no_sweep() });
        world.run(&key("1")).await;
        if is_closed {
            world.semel.close().await.unwrap();
        }
        world.clock.advance(RETENTION * 2);
        tokio::time::sleep(EVERY * 10).await;
        assert_eq!(world.semel.stats().swept, 0);
        assert_eq!(world.another().sweep(10).await.unwrap().removed, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_sweeps_without_being_asked_to() {
    let world = World::new();
    world.run(&key("1")).await;
    world.clock.advance(RETENTION * 2);
    tokio::time::sleep(EVERY * 3).await;
    assert_eq!(world.semel.stats().swept, 1);
}

#[test]
fn sweeping_and_counting_go_on_after_the_runtime_that_began_them_has_ended() {
    let world = World::with(|builder| builder.sweep_every(Duration::from_millis(5)));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    first.block_on(async {
        world.run(&key("1")).await.complete(outcome("paid")).await.unwrap();
        assert_eq!(world.semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
    });
    drop(first);
    runtime().block_on(async {
        assert_eq!(world.semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
        let duplicates = || async { world.semel.get(&key("1")).await.unwrap().unwrap().duplicates.count };
        tokio::time::timeout(Duration::from_secs(30), async {
            while duplicates().await < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            world.clock.advance(RETENTION);
            let mut reports = world.semel.sweep_reports();
            while world.semel.stats().swept == 0 {
                reports.changed().await.unwrap();
            }
        })
        .await
        .expect("counts are written and records swept on the second runtime");
    });
}

#[test]
fn counts_that_were_gathered_on_a_runtime_that_has_ended_are_written_on_the_next() {
    let world = World::new();
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let first = runtime();
    first.block_on(async {
        world.run(&key("1")).await.complete(outcome("paid")).await.unwrap();
        assert_eq!(world.semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
        // The writer has heard of the count, and waits for more.
        tokio::time::sleep(Duration::from_secs(1)).await;
    });
    drop(first);
    runtime().block_on(async {
        // No duplicate comes any more.
        drop(world.semel.sweep_reports());
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(world.semel.get(&key("1")).await.unwrap().unwrap().duplicates.count, 1);
    });
}

#[tokio::test]
async fn calls_after_close_are_refused_and_closing_twice_is_harmless() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    world.semel.close().await.unwrap();
    world.semel.close().await.unwrap();
    for error in [
        world.semel.claim(Claim::new(&key("2"))).await.map(drop).unwrap_err(),
        permit.complete(outcome("paid")).await.unwrap_err(),
        world.semel.get(&key("1")).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("closed"), "{error}");
    }
}

#[tokio::test]
async fn closing_writes_the_counts_and_lets_go_of_the_store() {
    let store = Arc::new(MemoryStore::new());
    let semel = Semel::builder_shared(store.clone()).build().unwrap();
    granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).complete(outcome("paid")).await.unwrap();
    assert_eq!(semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "replay");
    semel.close().await.unwrap();
    assert_eq!(Arc::strong_count(&store), 1, "the engine holds it no more");
    let other = Semel::builder_shared(store).build().unwrap();
    assert_eq!(other.get(&key("1")).await.unwrap().unwrap().duplicates.count, 1);
}

#[test]
fn a_sweep_that_could_never_work_is_refused_by_name() {
    let build = || Semel::builder(MemoryStore::new());
    for (builder, setting) in
        [(build().sweep_every(Duration::ZERO), "sweep_every"), (build().sweep_batch(0), "sweep_batch")]
    {
        let error = builder.build().map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().starts_with(setting), "{error}");
    }
}
