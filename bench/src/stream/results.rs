//! The numbers of one run.

use serde::Serialize;

use crate::args::StreamSettings;
use crate::report::{Bar, Facts, Spread};

/// Everything that one run found out.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) facts: Facts,
    /// Which servers, of which versions.
    pub(super) servers: String,
    /// Which filesystem files are on.
    pub(super) filesystem: String,
    /// How much of the machine others took right before the first window, from 0 to 1.
    pub(super) neighbours_share: f64,
    pub(super) settings: StreamSettings,
    pub(super) lines: Vec<Line>,
    /// How many receipts were looked up at the end; a run that misses one has no results.
    pub(super) receipts: u64,
    pub(super) bars: Vec<Bar>,
}

/// What went through on one store in batches of one size.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    pub(super) store: &'static str,
    pub(super) batch: u64,
    pub(super) new: Work,
    pub(super) duplicates: Work,
    /// How many times as many duplicates per second as new events: the median of the rounds' own ratios.
    pub(super) duplicates_times_new: f64,
}

/// One kind of events; medians of the rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Work {
    pub(super) per_second: Spread,
    pub(super) batch_p50_us: f64,
    pub(super) batch_p99_us: f64,
    /// Processor time of this process, for an event.
    pub(super) cpu_us: f64,
    /// How many times the rate of batches of one: the median of the rounds' own ratios.
    pub(super) times_single: f64,
}
