//! The numbers of one run. What was not measured is empty.

use serde::{Deserialize, Serialize};

use crate::args::FileSettings;
use crate::report::{Bar, Facts, Spread};

/// Everything that one run found out.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) facts: Facts,
    /// Which filesystem the stores were on.
    pub(crate) filesystem: String,
    pub(crate) settings: FileSettings,
    pub(crate) throughput: Option<Throughput>,
    pub(crate) openings: Vec<Opening>,
    pub(crate) expiries: Vec<Expiry>,
    pub(crate) growth: Option<Growth>,
    pub(crate) disk: Option<Disk>,
    pub(crate) bars: Vec<Bar>,
}

/// What many callers got done.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Throughput {
    pub(crate) rates: Vec<Rate>,
    pub(crate) raw: RawRates,
    /// How much of the machine other processes took meanwhile, from 0 to 1: with neighbours, every sync takes longer.
    pub(crate) neighbours_share: f64,
}

/// How many cycles per second one contestant did for so many callers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rate {
    pub(crate) contestant: &'static str,
    pub(crate) callers: usize,
    pub(crate) cycles: Spread,
    /// How long a claim waits; the median of the rounds.
    pub(crate) claim_p50_us: f64,
    pub(crate) claim_p99_us: f64,
    /// Processor time of a cycle; the median of the rounds.
    pub(crate) cpu_us: f64,
    /// How many times as fast the durable store was: the median of the rounds' own ratios.
    pub(crate) store_times: f64,
}

/// Syncs per second of 4 KiB each.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RawRates {
    pub(crate) zeroed: Spread,
    pub(crate) growing: Spread,
    /// Cycles of one lone caller of the durable store by half the rate of the zeroed file, since a cycle has two syncs:
    /// the median of the rounds' own ratios.
    pub(crate) lone_caller_share: f64,
}

/// How a store was left before it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Left {
    /// It was closed.
    Clean,
    /// Its process was ended with kill -9 while it worked.
    Killed,
}

/// What it takes to open a store.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Opening {
    pub(crate) contestant: &'static str,
    pub(crate) keys: u64,
    pub(crate) left: Left,
    /// Until the first claim was answered.
    pub(crate) seconds: Spread,
    /// The memory that it takes then, a key.
    pub(crate) resident_bytes: f64,
    /// Of that, what is not backed by files.
    pub(crate) anonymous_bytes: f64,
    /// What was asked of the Rust allocator, a key.
    pub(crate) allocated_bytes: f64,
}

/// How many bytes each further key takes, by the smallest and the largest of these: what a store takes whatever its size is
/// not in it.
#[expect(clippy::cast_precision_loss, reason = "bytes a key are read to three digits")]
pub(crate) fn bytes_a_further_key<'a>(openings: impl Iterator<Item = &'a Opening> + Clone) -> Option<f64> {
    let small = openings.clone().min_by_key(|opening| opening.keys)?;
    let large = openings.max_by_key(|opening| opening.keys).filter(|large| large.keys > small.keys)?;
    let all = |opening: &Opening| opening.resident_bytes * opening.keys as f64;
    Some((all(large) - all(small)) / (large.keys - small.keys) as f64)
}

/// What it takes to remove keys that are past their retention.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Expiry {
    pub(crate) contestant: &'static str,
    #[serde(flatten)]
    pub(crate) swept: Swept,
}

/// Removing all keys of one store, a batch at a time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Swept {
    pub(crate) removed: u64,
    pub(crate) seconds: f64,
    /// The batch that took longest.
    pub(crate) longest_ms: f64,
    pub(crate) disk_bytes_before: u64,
    pub(crate) disk_bytes_after: u64,
}

/// Cycles per second of a small store and of a large one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Growth {
    pub(crate) callers: usize,
    pub(crate) small_keys: u64,
    pub(crate) large_keys: u64,
    pub(crate) small: Spread,
    pub(crate) large: Spread,
    /// Large by small: the median of the rounds' own ratios.
    pub(crate) ratio: f64,
}

/// The disk that a store takes whose records come and go.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Disk {
    /// How many records came, one after the other.
    pub(crate) written: u64,
    pub(crate) samples: Vec<DiskSample>,
}

/// One look at the disk.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct DiskSample {
    pub(crate) live_records: u64,
    /// The encoded records that still count.
    pub(crate) live_bytes: u64,
    pub(crate) disk_bytes: u64,
}

impl Disk {
    /// Disk by live data, for every look.
    #[expect(clippy::cast_precision_loss, reason = "a ratio is read to three digits")]
    pub(crate) fn ratios(&self) -> Spread {
        let ratio = |sample: &DiskSample| sample.disk_bytes as f64 / sample.live_bytes as f64;
        Spread::of(&self.samples.iter().map(ratio).collect::<Vec<_>>())
    }
}
