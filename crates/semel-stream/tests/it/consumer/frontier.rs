//! The committed offset never passes an event without a receipt.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use semel_stream::{Backoff, Checkpoint, Consumer, Event, Failure, Handled, Pipeline, Position, Step, Watch};
use test_streams::feed::Feed;

use super::scene::{Ledger, event, events, fine, pipeline, unseen};

const SEEDS: u64 = 40;

/// How a handler behaves at one event, by the dice: late, and sometimes not at all.
async fn fickle(event: Arc<Event>, seed: u64, attempt: u32) -> Handled {
    let position = event.position.unwrap().get();
    let mut dice =
        StdRng::seed_from_u64(seed ^ (u64::try_from(position).unwrap() << 8) ^ (u64::from(attempt) << 40));
    tokio::time::sleep(Duration::from_millis(dice.random_range(0..40))).await;
    match dice.random_range(0..10) {
        0 => Err(Failure::Retry("not today".into())),
        1 if attempt > 1 => Err(Failure::Dead("never".into())),
        _ => fine(),
    }
}

/// Every event up to the offset of each stream has a receipt: asked of the store itself.
async fn offsets_are_honest(pipeline: &Pipeline, streams: &[&str]) {
    for stream in streams {
        let Some(offset) = pipeline.offset(stream).await.unwrap() else { continue };
        let Some(position) = offset.position else { continue };
        let ids: Vec<_> = (1..=position.get()).map(|at| event(stream, at).id.unwrap()).collect();
        let unseen = unseen(pipeline, &ids).await;
        assert!(!unseen.contains(&true), "{stream} at {position}: {unseen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_offset_never_passes_an_event_without_a_receipt_in_whatever_order_they_end() {
    for seed in 0..SEEDS {
        let mut dice = StdRng::seed_from_u64(seed);
        let (ledger, pipeline) = (Ledger::default(), pipeline());
        let feed = Feed::alone(events("a", 60).into_iter().chain(events("b", 40))).end();
        let checkpoint = [
            Checkpoint::EachEvent,
            Checkpoint::Every(dice.random_range(1..9)),
            Checkpoint::Interval(Duration::from_millis(dice.random_range(1..30))),
        ][dice.random_range(0..3)];
        let consumer = Consumer::new(pipeline.clone(), feed.source())
            .parallel(dice.random_range(1..24))
            .checkpoint(checkpoint)
            .attempts_max(4)
            .backoff(Backoff { first: Duration::from_millis(3), most: Duration::from_millis(20) })
            .watch(Arc::new(ledger.clone()));
        let run = tokio::spawn(consumer.run(move |event, permit| fickle(event, seed, permit.attempt())));
        while !run.is_finished() {
            offsets_are_honest(&pipeline, &["a", "b"]).await;
            tokio::time::sleep(Duration::from_millis(7)).await;
        }
        let report = run.await.unwrap().unwrap();
        assert_eq!(ledger.read().faults, [] as [&str; 0], "seed {seed}");
        assert_eq!(report.ran + report.dead_letters, 100, "seed {seed}");
        assert_eq!(report.offsets.values().map(|position| position.get()).collect::<Vec<_>>(), [60, 40]);
        offsets_are_honest(&pipeline, &["a", "b"]).await;
        assert_eq!(feed.acknowledged().len(), 100);
    }
}

/// The same check, on a consumer that commits the highest position that is done, whatever is still open below it.
#[tokio::test(start_paused = true)]
async fn a_consumer_that_commits_the_highest_end_is_caught() {
    let caught = futures_util::stream::iter(0..SEEDS).filter(|seed| {
        let seed = *seed;
        async move {
            let (ledger, pipeline) = (Ledger::default(), pipeline());
            commits_the_highest(&pipeline, &ledger, seed).await;
            let faults = ledger.read().faults.len();
            faults > 0
        }
    });
    assert_eq!(caught.count().await, usize::try_from(SEEDS).unwrap());
}

async fn commits_the_highest(pipeline: &Pipeline, ledger: &Ledger, seed: u64) {
    let reader = pipeline.take("a").await.unwrap();
    let mut running = FuturesUnordered::new();
    for event in events("a", 60) {
        let at = |event: &Event| semel_stream::At { stream: "a", position: event.position, key: None };
        ledger.saw(&Step::Delivered(at(&event)));
        running.push(async move {
            drop(fickle(Arc::new(event.clone()), seed, 1).await);
            pipeline.record([(event.id.clone().unwrap(), fine().unwrap())]).await.unwrap();
            ledger.saw(&Step::Receipt(at(&event)));
            event.position.unwrap()
        });
    }
    let mut highest = Position::new(0);
    while let Some(position) = running.next().await {
        if position > highest {
            highest = position;
            reader.commit(highest, None).await.unwrap();
            ledger.saw(&Step::Offset { stream: "a", position: highest });
        }
    }
}
