//! However often an event is delivered, it has one effect.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use semel_stream::{Consumer, OnBusy};
use test_streams::feed::Feed;

use super::scene::{Ledger, QUICK, events, fine, pipeline};

async fn storm(on_busy: OnBusy) {
    let mut deliveries: Vec<_> = (0..20).flat_map(|_| events("orders", 50)).collect();
    deliveries.shuffle(&mut StdRng::seed_from_u64(7));
    let feed = Feed::shared(deliveries).end();
    let (pipeline, ledger) = (pipeline(), Ledger::default());
    let effects: Arc<Mutex<HashMap<Box<str>, u32>>> = Arc::default();
    let mut runs = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let effects = Arc::clone(&effects);
        let consumer = Consumer::new(pipeline.clone(), feed.source())
            .on_busy(on_busy)
            .backoff(QUICK)
            .watch(Arc::new(ledger.clone()));
        runs.spawn(consumer.run(move |event, _| {
            let effects = Arc::clone(&effects);
            async move {
                tokio::time::sleep(Duration::from_millis(2)).await;
                *effects.lock().unwrap().entry(event.id.clone().unwrap()).or_default() += 1;
                fine()
            }
        }));
    }
    let reports: Vec<_> = runs.join_all().await.into_iter().map(Result::unwrap).collect();
    let effects = effects.lock().unwrap();
    assert_eq!(effects.len(), 50);
    assert!(effects.values().all(|times| *times == 1), "{effects:?}");
    assert_eq!(reports.iter().map(|report| report.ran).sum::<u64>(), 50);
    assert_eq!(reports.iter().map(|report| report.duplicates).sum::<u64>(), 950);
    assert_eq!(feed.acknowledged().len(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn every_event_twenty_times_over_has_one_effect() {
    storm(OnBusy::Wait).await;
}

#[tokio::test(start_paused = true)]
async fn every_event_twenty_times_over_has_one_effect_when_busy_ones_are_given_back() {
    storm(OnBusy::GiveBack).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_pipeline_in_common_the_same_check_finds_more_than_one_effect() {
    let feed = Feed::shared(events("orders", 10).into_iter().chain(events("orders", 10))).end();
    let (one, other) = (Consumer::new(pipeline(), feed.source()), Consumer::new(pipeline(), feed.source()));
    let slow = |_, _| async {
        tokio::time::sleep(Duration::from_millis(2)).await;
        fine()
    };
    let (one, other) = tokio::join!(one.parallel(1).run(slow), other.parallel(1).run(slow));
    assert!(one.unwrap().ran + other.unwrap().ran > 10);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_read_again_is_acknowledged_in_bulk_and_not_processed_again() {
    let (pipeline, feed) = (pipeline(), Feed::alone(events("orders", 500)).end());
    let first = Consumer::new(pipeline.clone(), feed.source()).run(|_, _| async { fine() }).await.unwrap();
    assert_eq!((first.ran, first.duplicates), (500, 0));
    pipeline.rewind("orders", None).await.unwrap();
    let again = Feed::alone(events("orders", 500)).end();
    let second = Consumer::new(pipeline.clone(), again.source()).run(|_, _| async { fine() }).await.unwrap();
    assert_eq!((second.ran, second.duplicates), (0, 500));
    assert!(again.calls().1 < 60, "{:?}", again.calls());
}
