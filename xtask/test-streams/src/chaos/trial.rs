//! A consumer of a broker, its effects, and a trouble in the middle.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use semel::store::Store;
use semel::{Outcome, Semel};
use semel_postgres::PostgresStore;
use semel_stream::source::Source;
use semel_stream::{Backoff, Checkpoint, Consumer, Event, EventKey, Pipeline, Report, Step, Stopper, Watch};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::promises::{Broker, KEY_HEADER, until};

/// How many events there are.
pub const EVENTS: usize = 300;
/// So many of them are processed before the trouble.
pub const BEFORE: usize = 60;
/// So many of them are published twice.
const TWINS: usize = 100;

/// How often each event had its effect, and how often the consumer had to wait or to try again.
#[derive(Clone)]
pub struct Effects {
    times: Arc<Mutex<BTreeMap<String, u32>>>,
    waits: Arc<AtomicU64>,
    /// How many handlers began.
    begun: Arc<AtomicU64>,
    gate: Arc<watch::Sender<bool>>,
}

impl Effects {
    /// With handlers that stop in the middle until the trouble is there: it is to find something in work.
    pub fn gated() -> Self {
        let gate = Arc::new(watch::Sender::new(false));
        Self { times: Arc::default(), waits: Arc::default(), begun: Arc::default(), gate }
    }

    /// With handlers that wait for nothing.
    pub fn free() -> Self {
        let effects = Self::gated();
        effects.open();
        effects
    }

    /// The trouble is there.
    pub fn open(&self) {
        self.gate.send_replace(true);
    }

    /// What every handler does first.
    pub async fn begin(&self) {
        if self.begun.fetch_add(1, Ordering::SeqCst) >= BEFORE as u64 {
            let _ = self.gate.subscribe().wait_for(|is_open| *is_open).await;
        }
    }

    /// This event had its effect.
    pub fn happened(&self, event: &Event) {
        let key = event.header_value(KEY_HEADER).unwrap().to_owned();
        *self.times.lock().unwrap().entry(key).or_default() += 1;
    }

    /// How many events had theirs.
    pub fn events(&self) -> usize {
        self.times.lock().unwrap().len()
    }

    /// How often the consumer had to wait or to try again.
    pub fn waits(&self) -> u64 {
        self.waits.load(Ordering::SeqCst)
    }

    /// Each of these had its effect, and none had it twice.
    pub fn assert_once(&self, ids: &[String]) {
        let times = self.times.lock().unwrap();
        assert_eq!(times.len(), ids.len());
        let others: Vec<_> = ids.iter().filter(|id| times.get(*id) != Some(&1)).collect();
        assert!(others.is_empty(), "not once: {others:?}");
    }
}

impl Watch for Effects {
    fn saw(&self, step: &Step<'_>) {
        if matches!(step, Step::Waiting(_) | Step::Failed { .. }) {
            self.waits.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A consumer that tries again soon.
pub fn consumer(
    pipeline: &Pipeline,
    source: Box<dyn Source>,
    effects: &Effects,
) -> Consumer<Box<dyn Source>> {
    let backoff = Backoff { first: Duration::from_millis(20), most: Duration::from_millis(300) };
    Consumer::new(pipeline.clone(), source)
        .key(EventKey::Header(KEY_HEADER.into()))
        .checkpoint(Checkpoint::Every(20))
        .backoff(backoff)
        .watch(Arc::new(effects.clone()))
}

/// A consumer that runs beside the test.
pub struct Run {
    /// Stops it.
    pub stopper: Stopper,
    /// How it ends.
    pub running: JoinHandle<semel::Result<Report>>,
}

/// A consumer whose effects take a moment.
pub fn consume(pipeline: &Pipeline, source: Box<dyn Source>, effects: &Effects) -> Run {
    let consumer = consumer(pipeline, source, effects);
    let (stopper, effects) = (consumer.stopper(), effects.clone());
    let running = tokio::spawn(consumer.run(move |event: Arc<Event>, _| {
        let effects = effects.clone();
        async move {
            effects.begin().await;
            tokio::time::sleep(Duration::from_millis(2)).await;
            effects.happened(&event);
            Ok(Outcome::success("done"))
        }
    }));
    Run { stopper, running }
}

impl Run {
    /// Stops it in order.
    pub async fn stop(self) -> Report {
        self.stopper.stop();
        tokio::time::timeout(Duration::from_secs(30), self.running).await.expect("it ends").unwrap().unwrap()
    }
}

/// A pipeline of a test's own on this store.
pub fn pipeline(store: impl Store, lease: Duration) -> Pipeline {
    let name = format!("chaos-{:016x}", rand::random::<u64>());
    Pipeline::builder(&Semel::new(store), &name).lease(lease).build().unwrap()
}

/// The same on the PostgreSQL at this address.
pub async fn on_postgres(url: &str, lease: Duration) -> Pipeline {
    semel_postgres::migrate(url).await.unwrap();
    pipeline(PostgresStore::connect(url).await.unwrap(), lease)
}

/// Publishes events, and some of them again.
pub async fn publish(broker: &impl Broker) -> Vec<String> {
    let ids: Vec<_> = broker.publish_many(EVENTS).await.into_iter().collect();
    broker.publish_twins(&ids[..TWINS]).await;
    ids
}

/// Has consumers read all of it, with a trouble in the middle, which opens the gate: they go on by themselves.
pub async fn goes_on<B: Broker>(
    broker: &mut B,
    pipeline: &Pipeline,
    port: u16,
    consumers: usize,
    trouble: impl AsyncFnOnce(&mut B, &Effects),
) {
    let (ids, effects) = (publish(broker).await, Effects::gated());
    let runs: Vec<_> = (0..consumers).map(|_| consume(pipeline, broker.reader(port), &effects)).collect();
    until(async || effects.events() >= BEFORE).await;
    trouble(broker, &effects).await;
    let is_felt = effects.events() < EVENTS || broker.left().await != Some(0);
    until(async || effects.events() == EVENTS && broker.left().await == Some(0)).await;
    let mut duplicates = 0;
    for run in runs {
        duplicates += run.stop().await.duplicates;
    }
    effects.assert_once(&ids);
    let unseen = pipeline.unseen(&ids).await.unwrap();
    assert!(unseen.iter().all(|unseen| matches!(unseen, Ok(false))), "a receipt is missing");
    // Control: there was something to keep apart, and the trouble was not over before anybody felt it.
    assert!(duplicates >= TWINS as u64, "{duplicates} duplicates");
    assert!(is_felt || effects.waits() > 0, "everything was done during the trouble");
}
