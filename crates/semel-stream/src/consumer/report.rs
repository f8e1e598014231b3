//! What a consumer has done so far, in numbers.
//!
//! The same numbers go to the `metrics` facade, by `pipeline`: `semel_stream_delivered_total`,
//! `semel_stream_events_total` by `result`, `semel_stream_retries_total`, `semel_stream_commits_total`, and the gauge
//! `semel_stream_lag`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics::{Counter, Gauge, counter, gauge};
use tokio::time::Instant;

use semel::machine::offset::Position;

/// What a consumer has done since it was built.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Events that the source delivered, as often as it did.
    pub delivered: u64,
    /// Events that were processed here.
    pub ran: u64,
    /// Deliveries of events that had been processed before, or were being processed here when they came again.
    pub duplicates: u64,
    /// Attempts that failed and were, or are to be, followed by another.
    pub retries: u64,
    /// Events that were put aside.
    pub dead_letters: u64,
    /// Deliveries that went back to the source.
    pub given_back: u64,
    /// Requeued events that were taken up here; what became of them is in the other numbers.
    pub requeued: u64,
    /// How often an offset was committed.
    pub committed: u64,
    /// How many events were yet to be delivered when the source was last asked, if it knows.
    pub lag: Option<u64>,
    /// Events per second, from the first delivery to the last end of one.
    pub events_per_second: f64,
    /// How far each stream was committed here.
    pub offsets: BTreeMap<Arc<str>, Position>,
}

/// One number, and the metric that it also feeds.
pub(super) struct Count {
    number: AtomicU64,
    metric: Counter,
}

impl Count {
    fn new(metric: Counter) -> Self {
        Self { number: AtomicU64::new(0), metric }
    }

    pub(super) fn add(&self, more: u64) {
        self.number.fetch_add(more, Ordering::Relaxed);
        self.metric.increment(more);
    }

    pub(super) fn one(&self) {
        self.add(1);
    }

    fn get(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }
}

/// The numbers while they are being counted.
pub(super) struct Tally {
    pub(super) delivered: Count,
    pub(super) ran: Count,
    pub(super) duplicates: Count,
    pub(super) retries: Count,
    pub(super) dead_letters: Count,
    pub(super) given_back: Count,
    pub(super) committed: Count,
    /// No metric: each is counted there by what becomes of it.
    requeued: AtomicU64,
    lag_gauge: Gauge,
    rest: Mutex<Rest>,
}

#[derive(Default)]
struct Rest {
    lag: Option<u64>,
    first_at: Option<Instant>,
    last_at: Option<Instant>,
    offsets: BTreeMap<Arc<str>, Position>,
}

impl Tally {
    pub(super) fn new(pipeline: &str) -> Self {
        let name = || pipeline.to_owned();
        let events = |result: &'static str| {
            Count::new(counter!(semel::metrics::STREAM_EVENTS.name, "pipeline" => name(), "result" => result))
        };
        Self {
            delivered: Count::new(counter!(semel::metrics::STREAM_DELIVERED.name, "pipeline" => name())),
            ran: events("ran"),
            duplicates: events("duplicate"),
            dead_letters: events("dead_letter"),
            given_back: events("given_back"),
            retries: Count::new(counter!(semel::metrics::STREAM_RETRIES.name, "pipeline" => name())),
            committed: Count::new(counter!(semel::metrics::STREAM_COMMITS.name, "pipeline" => name())),
            requeued: AtomicU64::new(0),
            lag_gauge: gauge!(semel::metrics::STREAM_LAG.name, "pipeline" => name()),
            rest: Mutex::default(),
        }
    }

    pub(super) fn began(&self) {
        self.rest(|rest| {
            rest.first_at.get_or_insert_with(Instant::now);
        });
    }

    /// A requeued event is taken up.
    pub(super) fn requeue_begins(&self) {
        self.began();
        self.requeued.fetch_add(1, Ordering::Relaxed);
    }

    /// A requeued event is another consumer's after all.
    pub(super) fn requeue_given_up(&self) {
        self.requeued.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) {
        self.rest(|rest| rest.last_at = Some(Instant::now()));
    }

    pub(super) fn offset(&self, stream: &Arc<str>, position: Position) {
        self.committed.one();
        self.rest(|rest| rest.offsets.insert(Arc::clone(stream), position));
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    pub(super) fn lag(&self, lag: Option<u64>) {
        if let Some(lag) = lag {
            self.lag_gauge.set(lag as f64);
        }
        self.rest(|rest| rest.lag = lag);
    }

    /// How many events are still to come, as far as the source last said.
    pub(super) fn known_lag(&self) -> Option<u64> {
        self.rest(|rest| rest.lag)
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate is a float")]
    pub(super) fn report(&self) -> Report {
        let (ran, duplicates, dead_letters) =
            (self.ran.get(), self.duplicates.get(), self.dead_letters.get());
        let ended = ran.saturating_add(duplicates).saturating_add(dead_letters);
        self.rest(|rest| {
            let took = rest
                .first_at
                .zip(rest.last_at)
                .map_or(Duration::ZERO, |(first, last)| last.duration_since(first));
            let events_per_second = if took.is_zero() { 0.0 } else { ended as f64 / took.as_secs_f64() };
            Report {
                delivered: self.delivered.get(),
                ran,
                duplicates,
                retries: self.retries.get(),
                dead_letters,
                given_back: self.given_back.get(),
                requeued: self.requeued.load(Ordering::Relaxed),
                committed: self.committed.get(),
                lag: rest.lag,
                events_per_second,
                offsets: rest.offsets.clone(),
            }
        })
    }

    fn rest<T>(&self, change: impl FnOnce(&mut Rest) -> T) -> T {
        change(&mut self.rest.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
