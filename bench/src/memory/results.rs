//! The numbers of one run.

use serde::{Deserialize, Serialize};

use crate::args::Settings;
use crate::report::{Bar, Facts};

/// Everything that one run found out.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) facts: Facts,
    pub(crate) settings: Settings,
    pub(crate) rates: Vec<Rate>,
    /// Processor time, a replay, of writing the engine's counts of duplicates later.
    pub(crate) counts_ns: f64,
    pub(crate) footprints: Vec<Footprint>,
    pub(crate) bound: Vec<BoundCase>,
    pub(crate) bars: Vec<Bar>,
}

/// What a window consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Work {
    /// Claim and complete of new keys.
    Cycles,
    /// Claims of done keys.
    Replays,
}

/// How often per second one contestant did one kind of work.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rate {
    pub(crate) contestant: &'static str,
    pub(crate) work: Work,
    pub(crate) threads: usize,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Processor time of a call, which neighbours do not add to; the median of the rounds.
    pub(crate) cpu_ns: f64,
    /// How many times as fast as the map as it is usually written: what the bars are judged by.
    pub(crate) times_map: Times,
    /// How many times as fast as the lean map.
    pub(crate) times_lean: Times,
}

/// How many times as fast as another contestant: the median of the rounds' ratios. Neighbours in time are compared,
/// so a slow spell of the machine counts for both.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Times {
    /// By calls a second.
    pub(crate) rate: f64,
    /// By processor time.
    pub(crate) cpu: f64,
}

/// What one settled record takes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Footprint {
    pub(crate) contestant: String,
    pub(crate) records: u64,
    /// As asked of the allocator.
    pub(crate) allocated_bytes: f64,
    /// As the process grew, the allocator's own rounding included.
    pub(crate) resident_bytes: f64,
    /// What nobody could do without: the texts of the key and the outcome.
    pub(crate) payload_bytes: f64,
}

impl Footprint {
    /// What a record takes beyond its payload, by the larger of the two measures.
    pub(crate) fn overhead_bytes(&self) -> f64 {
        self.allocated_bytes.max(self.resident_bytes) - self.payload_bytes
    }
}

/// How long a new claim took, in one state of the store.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BoundCase {
    pub(crate) name: &'static str,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// The median of the rounds' ratios of p99 to the store that is half full.
    pub(crate) times_half: f64,
}
