//! Stores and brokers that do not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use semel::Semel;
use semel_stream::{Checkpoint, Consumer, Pipeline};
use semel_testkit::{Fault, FaultyStore};
use test_streams::feed::Feed;

use super::scene::{Ledger, QUICK, events, fine, memory, until};

#[tokio::test(start_paused = true)]
async fn a_store_that_vanishes_for_an_hour_costs_an_hour_and_nothing_else() {
    let is_down = Arc::new(AtomicBool::new(false));
    let down = Arc::clone(&is_down);
    let store = FaultyStore::new(Arc::new(memory()), move |_| {
        if down.load(Ordering::SeqCst) { Fault::Refuse } else { Fault::None }
    });
    let pipeline = Pipeline::new(&Semel::new(store), "orders").unwrap();
    let (feed, ledger) = (Feed::alone(events("a", 100)).end(), Ledger::default());
    let consumer = Consumer::new(pipeline.clone(), feed.source())
        .checkpoint(Checkpoint::EachEvent)
        .watch(Arc::new(ledger.clone()));
    let run = tokio::spawn(consumer.run(|_, _| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        fine()
    }));
    until("half is done", || ledger.count("receipt") > 40).await;
    is_down.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(ledger.count("waiting") > 100);
    is_down.store(false, Ordering::SeqCst);
    let report = run.await.unwrap().unwrap();
    assert_eq!((report.ran, report.offsets["a"].get(), ledger.count("effect")), (100, 100, 100));
    assert_eq!(ledger.read().faults, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn replies_that_are_lost_again_and_again_double_no_effect() {
    for seed in 0..20 {
        let mut dice = StdRng::seed_from_u64(seed);
        let store = FaultyStore::new(Arc::new(memory()), move |_| match dice.random_range(0..10) {
            0 => Fault::Refuse,
            1 => Fault::LoseAsk(Duration::from_millis(3)),
            2 => Fault::LoseReply(Duration::from_millis(3)),
            3 => Fault::Delay(Duration::from_millis(2)),
            _ => Fault::None,
        });
        let pipeline = Pipeline::new(&Semel::new(store), "orders").unwrap();
        let (feed, ledger) = (Feed::alone(events("a", 60)).end(), Ledger::default());
        let consumer = Consumer::new(pipeline.clone(), feed.source())
            .checkpoint(Checkpoint::EachEvent)
            .backoff(QUICK)
            .watch(Arc::new(ledger.clone()));
        let report = consumer.run(|_, _| async { fine() }).await.unwrap();
        assert_eq!((report.ran, ledger.count("effect")), (60, 60), "seed {seed}");
        assert_eq!(report.offsets["a"].get(), 60);
        assert_eq!(ledger.read().faults, [] as [&str; 0], "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_vanishes_for_an_hour_costs_an_hour_and_nothing_else() {
    for feed in [Feed::alone(events("a", 100)).end(), Feed::shared(events("a", 100)).end()] {
        let pipeline = Pipeline::new(&Semel::new(memory()), "orders").unwrap();
        let ledger = Ledger::default();
        let consumer = Consumer::new(pipeline.clone(), feed.source()).watch(Arc::new(ledger.clone()));
        let run = tokio::spawn(consumer.run(|_, _| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            fine()
        }));
        until("half is done", || ledger.count("receipt") > 40).await;
        feed.set_down(true);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(ledger.count("waiting") > 100);
        feed.set_down(false);
        let report = run.await.unwrap().unwrap();
        assert_eq!((report.ran, report.offsets["a"].get()), (100, 100));
        assert_eq!((feed.acknowledged().len(), ledger.count("acknowledged")), (100, 100));
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_gone_for_good_does_not_keep_a_consumer_from_stopping() {
    let is_down = Arc::new(AtomicBool::new(false));
    let down = Arc::clone(&is_down);
    let store = FaultyStore::new(Arc::new(memory()), move |_| {
        if down.load(Ordering::SeqCst) { Fault::Refuse } else { Fault::None }
    });
    let pipeline = Pipeline::new(&Semel::new(store), "orders").unwrap();
    let (feed, ledger) = (Feed::alone(events("a", 100)), Ledger::default());
    let consumer = Consumer::new(pipeline, feed.source()).watch(Arc::new(ledger.clone()));
    let stopper = consumer.stopper();
    let run = tokio::spawn(consumer.run(|_, _| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        fine()
    }));
    until("some are done", || ledger.count("receipt") > 10).await;
    is_down.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(3)).await;
    stopper.stop();
    tokio::time::timeout(Duration::from_mins(3), run).await.unwrap().unwrap().unwrap();
}
