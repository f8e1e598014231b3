//! The numbers of one run.

use serde::Serialize;

use crate::args::ClaimsSettings;
use crate::report::{Bar, Facts, Spread};

/// Everything that one run found out.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) facts: Facts,
    pub(super) redis: String,
    /// Which filesystem the stores in files were on.
    pub(super) filesystem: String,
    /// How much of the machine others took right before the first window, from 0 to 1.
    pub(super) neighbours_share: f64,
    pub(super) settings: ClaimsSettings,
    pub(super) lines: Vec<Line>,
    pub(super) bars: Vec<Bar>,
}

/// What one contestant did. Spans are medians of the rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    pub(super) contestant: &'static str,
    /// Keys claimed and completed; echoes; `SET NX`.
    pub(super) cycles_per_second: Spread,
    pub(super) requests_per_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// Of Redis, none: redis-benchmark does not say.
    pub(super) server_cpu_us: Option<f64>,
    pub(super) client_cpu_us: f64,
    /// Requests per second, as a multiple of the echo's: the median of the rounds' own ratios.
    pub(super) times_echo: f64,
    /// Cycles per second, as a multiple of Redis', likewise.
    pub(super) times_redis: f64,
}
