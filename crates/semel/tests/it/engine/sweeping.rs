//! The sweeper: reports each round, survives errors, stops cleanly.

use std::sync::Arc;
use std::time::Duration;

use semel::Semel;
use semel::store::MemoryStore;
use semel_testkit::{Fault, FaultyStore, ManualClock};

use crate::world::{RETENTION, World, key, outcome};

const EVERY: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn every_round_is_reported_and_only_what_is_past_its_time_goes() {
    let world = World::new();
    for name in 0..2_500 {
        world.run(&key(&name.to_string())).await.complete(outcome("paid")).await.unwrap();
    }
    world.clock.advance(RETENTION / 2);
    let held = world.run(&key("later")).await;
    held.complete(outcome("paid")).await.unwrap();
    let sweeper = world.semel.sweeper().every(EVERY).batch(1_000).start();
    let mut reports = sweeper.reports();
    reports.changed().await.unwrap();
    assert_eq!((reports.borrow_and_update().round, sweeper.reports().borrow().removed), (1, 0));
    world.clock.advance(RETENTION / 2);
    reports.changed().await.unwrap();
    let report = reports.borrow_and_update().clone();
    assert_eq!((report.round, report.removed, report.batches), (2, 2_500, 3));
    assert_eq!(report.error, None);
    assert_eq!(world.semel.stats().swept, 2_500);
    assert!(world.semel.get(&key("later")).await.unwrap().is_some());
    assert_eq!(sweeper.stop().await.round, 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_round_is_reported_and_the_next_one_tries_again() {
    let clock = ManualClock::at(1_000_000);
    let store = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
    let direct = Semel::builder_shared(store.clone()).build().unwrap();
    crate::world::granted(direct.claim(semel::Claim::new(&key("1"))).await.unwrap());
    clock.advance(RETENTION * 2);
    let semel = Semel::new(FaultyStore::scripted(store, [Fault::Refuse]));
    let sweeper = semel.sweeper().every(EVERY).start();
    let mut reports = sweeper.reports();
    reports.changed().await.unwrap();
    assert!(reports.borrow_and_update().error.is_some());
    reports.changed().await.unwrap();
    let report = reports.borrow_and_update().clone();
    assert_eq!((report.removed, report.error), (1, None));
}

#[tokio::test(start_paused = true)]
async fn a_sweeper_that_is_dropped_or_stopped_sweeps_no_more() {
    let world = World::new();
    drop(world.semel.sweeper().every(EVERY).start());
    let stopped = world.semel.sweeper().every(EVERY).start();
    stopped.stop().await;
    world.run(&key("1")).await;
    world.clock.advance(RETENTION * 2);
    tokio::time::sleep(EVERY * 10).await;
    assert_eq!(world.semel.stats().swept, 0);
    assert_eq!(world.semel.sweep(10).await.unwrap().removed, 1);
}
