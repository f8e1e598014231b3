//! The numbers of one run.

use serde::Serialize;

use super::entry::SEMEL;
use crate::args::ServerSettings;
use crate::report::{Bar, Facts, Spread};

/// Everything that one run found out.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) facts: Facts,
    /// Which server, of which version.
    pub(crate) server: String,
    /// Which filesystem its data were on.
    pub(crate) filesystem: String,
    /// How much of the machine others took right before the first window, from 0 to 1.
    pub(crate) neighbours_share: f64,
    pub(crate) settings: ServerSettings,
    pub(crate) rates: Vec<Rate>,
    /// What the server held at the end; a run whose counts do not agree has no results.
    pub(crate) counted: Vec<Counted>,
    pub(crate) bars: Vec<Bar>,
}

/// What one contestant did for so many callers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rate {
    pub(crate) contestant: &'static str,
    /// How its server is set, where there is more than one.
    pub(crate) setting: &'static str,
    pub(crate) callers: usize,
    pub(crate) cycles: Work,
    pub(crate) replays: Work,
}

impl Rate {
    pub(crate) fn is_semel(&self) -> bool {
        self.contestant == SEMEL
    }
}

/// One kind of work. Multiples are of what semel did beside it: the median of the rounds' own ratios.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Work {
    pub(crate) per_second: Spread,
    /// With everything that was left for later; the median of the rounds, as all that follow.
    pub(crate) sustained: f64,
    pub(crate) claim_p50_us: f64,
    pub(crate) claim_p99_us: f64,
    /// Processor time of this process, for each.
    pub(crate) cpu_us: f64,
    /// How many times as many per second semel did.
    pub(crate) semel_times: f64,
    pub(crate) semel_sustained_times: f64,
    /// How many times the processor time semel took.
    pub(crate) semel_cpu_times: f64,
}

/// What callers of one contestant were told; its server holds the same.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Counted {
    pub(crate) contestant: &'static str,
    pub(crate) setting: &'static str,
    /// Keys that were there before.
    pub(crate) loaded: u64,
    /// Keys that ran once each and are done.
    pub(crate) ran: u64,
    /// Claims that were answered with an outcome.
    pub(crate) replayed: u64,
}
