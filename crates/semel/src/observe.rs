//! The engine's counters and histograms, and the numbers behind them. Their names are in the [table](crate::metrics).

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Key, Label, Level, Metadata};
use tokio::time::Instant;

use crate::metrics::{CLAIM_SECONDS, DECISIONS, LOST, SETTLE_SECONDS, SWEPT};
use crate::per_thread::PerThread;

/// What every metric of the engine is recorded with.
static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// What an engine decided since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Runs granted, `record_once` included.
    pub run: u64,
    /// Claims answered with a stored outcome.
    pub replay: u64,
    /// Claims told that another caller runs.
    pub busy: u64,
    /// Claims with another fingerprint.
    pub mismatch: u64,
    /// Claims told that somebody must decide.
    pub held: u64,
    /// Permits that turned out to be another's.
    pub lost: u64,
    /// Runs without protection.
    pub unprotected: u64,
    /// Records removed past their time.
    pub swept: u64,
}

/// The engine's own counters, each with its metric.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) run: Counter<Run>,
    pub(crate) replay: Counter<Replay>,
    pub(crate) busy: Counter<Busy>,
    pub(crate) mismatch: Counter<Mismatch>,
    pub(crate) held: Counter<Held>,
    pub(crate) lost: Counter<Lost>,
    pub(crate) unprotected: Counter<Unprotected>,
    pub(crate) swept: Counter<Swept>,
}

impl Counters {
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            run: self.run.get(),
            replay: self.replay.get(),
            busy: self.busy.get(),
            mismatch: self.mismatch.get(),
            held: self.held.get(),
            lost: self.lost.get(),
            unprotected: self.unprotected.get(),
            swept: self.swept.get(),
        }
    }
}

/// A number of its own, and the metric that it also feeds.
#[derive(Default)]
pub(crate) struct Counter<M> {
    count: PerThread<AtomicU64>,
    metric: std::marker::PhantomData<M>,
}

impl<M: Metric> Counter<M> {
    pub(crate) fn count(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, more: u64) {
        self.count.mine().fetch_add(more, Ordering::Relaxed);
        M::increment(more);
    }

    fn get(&self) -> u64 {
        self.count.all().fold(0, |sum, count| sum.wrapping_add(count.load(Ordering::Relaxed)))
    }
}

/// Feeds one metric. Each is a type with a key of its own: hashed when it is compiled, not at each claim.
pub(crate) trait Metric {
    fn increment(more: u64);
}

macro_rules! metric {
    ($kind:ident, $metric:ident $(, $label:literal => $value:literal)?) => {
        #[derive(Default)]
        pub(crate) struct $kind;

        impl Metric for $kind {
            fn increment(more: u64) {
                static LABELS: &[Label] = &[$(Label::from_static_parts($label, $value))?];
                static KEY: Key = Key::from_static_parts($metric.name, LABELS);
                metrics::with_recorder(|recorder| recorder.register_counter(&KEY, &METADATA)).increment(more);
            }
        }
    };
}

metric!(Run, DECISIONS, "decision" => "run");
metric!(Replay, DECISIONS, "decision" => "replay");
metric!(Busy, DECISIONS, "decision" => "busy");
metric!(Mismatch, DECISIONS, "decision" => "mismatch");
metric!(Held, DECISIONS, "decision" => "held");
metric!(Unprotected, DECISIONS, "decision" => "unprotected");
metric!(Lost, LOST);
metric!(Swept, SWEPT);

pub(crate) fn claim_took_since(started_at: Instant) {
    static KEY: Key = Key::from_static_name(CLAIM_SECONDS.name);
    metrics::with_recorder(|recorder| recorder.register_histogram(&KEY, &METADATA)).record(Since(started_at));
}

pub(crate) fn settle_took_since(started_at: Instant) {
    static KEY: Key = Key::from_static_name(SETTLE_SECONDS.name);
    metrics::with_recorder(|recorder| recorder.register_histogram(&KEY, &METADATA)).record(Since(started_at));
}

/// A span that ends now, if anybody records it: without a recorder, nobody looks at the clock.
struct Since(Instant);

impl metrics::IntoF64 for Since {
    fn into_f64(self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
