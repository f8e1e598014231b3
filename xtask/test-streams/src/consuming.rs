//! The consumer over a broker that is killed: one effect each, whatever was published or delivered twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Outcome, Semel};
use semel_stream::{Consumer, Event, EventKey, Pipeline, Report, Stopper};
use tokio::task::JoinHandle;

use crate::promises::{Broker, KEY_HEADER, until};

const EVENTS: usize = 500;

/// How often each event had its effect.
type Effects = Arc<Mutex<BTreeMap<String, u32>>>;

fn consume(
    broker: &impl Broker,
    pipeline: &Pipeline,
    effects: &Effects,
) -> (Stopper, JoinHandle<semel::Result<Report>>) {
    let consumer = Consumer::new(pipeline.clone(), broker.reader(broker.port()))
        .key(EventKey::Header(KEY_HEADER.into()))
        .checkpoint(semel_stream::Checkpoint::Every(20));
    let stopper = consumer.stopper();
    let effects = Arc::clone(effects);
    let running = tokio::spawn(consumer.run(move |event: Arc<Event>, _| {
        let effects = Arc::clone(&effects);
        async move {
            tokio::time::sleep(Duration::from_millis(2)).await;
            let key = event.header_value(KEY_HEADER).unwrap().to_owned();
            *effects.lock().unwrap().entry(key).or_default() += 1;
            Ok(Outcome::success("done"))
        }
    }));
    (stopper, running)
}

/// Two consumers read while `crash` is called: every event, also what was published twice, has one effect.
pub async fn two_consumers_and_a_crash_make_one_effect_each<B: Broker>(
    broker: &mut B,
    crash: impl FnOnce(&mut B),
) {
    let published = broker.publish_many(EVENTS).await;
    let ids: Vec<_> = published.iter().cloned().collect();
    broker.publish_twins(&ids).await;
    assert_eq!(broker.left().await, Some(2 * 500));
    let pipeline = Pipeline::new(&Semel::new(MemoryStore::new()), "effects").unwrap();
    let effects = Effects::default();
    let consumers = [consume(broker, &pipeline, &effects), consume(broker, &pipeline, &effects)];
    until(async || effects.lock().unwrap().len() >= EVENTS / 4).await;
    crash(broker);
    until(async || effects.lock().unwrap().len() == EVENTS && broker.left().await == Some(0)).await;
    let mut reports = Vec::new();
    for (stopper, running) in consumers {
        stopper.stop();
        reports.push(running.await.unwrap().unwrap());
    }
    assert_eq!(broker.left().await, Some(0), "something was not acknowledged");
    let effects = effects.lock().unwrap().clone();
    assert!(effects.keys().eq(&published));
    assert!(effects.values().all(|times| *times == 1), "an effect happened twice");
    let unseen = pipeline.unseen(&ids).await.unwrap();
    assert!(unseen.iter().all(|unseen| matches!(unseen, Ok(false))), "a receipt is missing");
    let sum = |count: fn(&Report) -> u64| reports.iter().map(count).sum::<u64>();
    assert_eq!(sum(|report| report.ran), 500);
    // Control: there was something to keep apart. Every twin, and what the crash brought again.
    assert!(sum(|report| report.duplicates) >= 500, "{reports:?}");
    assert!(sum(|report| report.delivered) > 1_000, "the crash caught nothing in work: {reports:?}");
}
