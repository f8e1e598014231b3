//! When offsets are committed.

use std::sync::Arc;
use std::time::Duration;

use semel::ErrorKind;
use semel_stream::{Checkpoint, Consumer, Order};
use test_streams::feed::Feed;

use super::scene::{Ledger, events, fine, pipeline, until};

/// Which offsets are committed while twelve events are processed, one every 100 ms.
async fn offsets(checkpoint: Checkpoint) -> Vec<u128> {
    let (ledger, feed) = (Ledger::default(), Feed::alone(events("a", 12)).end());
    let consumer = Consumer::new(pipeline(), feed.source())
        .order(Order::Stream)
        .checkpoint(checkpoint)
        .watch(Arc::new(ledger.clone()));
    let report = consumer
        .run(|_, _| async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            fine()
        })
        .await
        .unwrap();
    let offsets = ledger.read().offsets.remove("a").unwrap_or_default();
    assert_eq!(report.committed, offsets.len() as u64);
    assert_eq!(ledger.read().faults, [] as [&str; 0]);
    assert_eq!(feed.acknowledged().len() as u128, offsets.last().copied().unwrap_or_default());
    offsets
}

#[tokio::test(start_paused = true)]
async fn an_offset_is_committed_for_each_event_or_every_few_or_every_while() {
    assert_eq!(offsets(Checkpoint::EachEvent).await, (1..=12).collect::<Vec<_>>());
    assert_eq!(offsets(Checkpoint::Every(5)).await, [5, 10, 12]);
    assert_eq!(offsets(Checkpoint::Every(100)).await, [12]);
    assert_eq!(offsets(Checkpoint::Interval(Duration::from_millis(430))).await, [4, 8, 12]);
    assert_eq!(offsets(Checkpoint::default()).await.len(), 2, "after a second, and at the end");
}

#[tokio::test]
async fn a_consumer_that_could_never_work_is_refused_by_the_name_of_the_choice() {
    let feed = Feed::alone(events("a", 3)).end();
    let refused = async |choose: fn(Consumer<_>) -> Consumer<_>, named: &str| {
        let consumer = choose(Consumer::new(pipeline(), feed.source()));
        let error = consumer.run(|_, _| async { fine() }).await.expect_err(named);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{named}");
        assert!(error.to_string().contains(named), "{error}");
        assert!(error.to_string().contains("give 1 or more"), "{error}");
    };
    refused(|consumer| consumer.parallel(0), "parallel is 0").await;
    refused(|consumer| consumer.attempts_max(0), "attempts_max is 0").await;
    refused(|consumer| consumer.checkpoint(Checkpoint::Every(0)), "checkpoint is Every(0)").await;
    assert!(feed.acknowledged().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_explicit_checkpoint_is_the_only_one_also_at_the_end() {
    assert_eq!(offsets(Checkpoint::Explicit).await, [] as [u128; 0]);
    let (ledger, feed, pipeline) = (Ledger::default(), Feed::alone(events("a", 7)), pipeline());
    let consumer = Consumer::new(pipeline.clone(), feed.source())
        .checkpoint(Checkpoint::Explicit)
        .watch(Arc::new(ledger.clone()));
    let stopper = consumer.stopper();
    let run = tokio::spawn(consumer.run(|_, _| async { fine() }));
    until("all are done", || stopper.report().ran == 7).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(ledger.count("offset"), 0);
    stopper.checkpoint();
    until("it is committed", || ledger.count("offset") == 1).await;
    feed.push(super::scene::event("a", 8));
    until("one more is done", || stopper.report().ran == 8).await;
    stopper.stop();
    run.await.unwrap().unwrap();
    assert_eq!(ledger.read().offsets["a"], [7]);
    let offset = pipeline.offset("a").await.unwrap().unwrap();
    assert_eq!(offset.last_event.as_deref(), Some("a-7"));
}

#[tokio::test(start_paused = true)]
async fn an_offset_that_many_share_is_where_the_source_says_that_everybody_is() {
    let (ledger, feed, pipeline) = (Ledger::default(), Feed::shared(events("a", 20)).end(), pipeline());
    let held_up = pipeline.claim("a-5").await.unwrap();
    let consumer = |ledger: &Ledger| {
        Consumer::new(pipeline.clone(), feed.source()).parallel(4).watch(Arc::new(ledger.clone()))
    };
    let both = (consumer(&ledger), consumer(&ledger));
    let both = tokio::spawn(async move {
        tokio::join!(both.0.run(|_, _| async { fine() }), both.1.run(|_, _| async { fine() }))
    });
    until("the others are done", || feed.acknowledged().len() == 19).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(pipeline.offset("a").await.unwrap().unwrap().position.unwrap().get(), 4);
    let semel::Decision::Run(permit) = held_up else { panic!("it must run") };
    permit.complete(fine().unwrap()).await.unwrap();
    both.await.unwrap().0.unwrap();
    assert_eq!(pipeline.offset("a").await.unwrap().unwrap().position.unwrap().get(), 20);
    assert_eq!(ledger.read().faults, [] as [&str; 0]);
}
