//! The numbers of one run.

use serde::Serialize;

use crate::args::{HttpPart, HttpSettings};
use crate::report::{Bar, Facts, Spread};

/// Everything that one run found out.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) facts: Facts,
    pub(super) nginx: String,
    pub(super) redis: String,
    /// Which filesystem the stores in files were on.
    pub(super) filesystem: String,
    /// How much of the machine others took right before the first window, from 0 to 1.
    pub(super) neighbours_share: f64,
    pub(super) settings: HttpSettings,
    pub(super) lines: Vec<Line>,
    pub(super) bars: Vec<Bar>,
}

/// What one contestant did. Spans are medians of the rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    pub(super) part: HttpPart,
    pub(super) contestant: &'static str,
    pub(super) keys: &'static str,
    pub(super) connections: usize,
    pub(super) per_second: Spread,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// Processor time of the server for each request; of a proxy alone, without the handler behind it. A thousand times as much
    /// in a thousand requests.
    pub(super) server_cpu_us: f64,
    /// Processor time of the clients.
    pub(super) client_cpu_us: f64,
    /// Requests per second, as a multiple of the bare handler's or of nginx's: the median of the rounds' own ratios.
    pub(super) times_base: f64,
    /// The server's processor time, likewise.
    pub(super) cpu_times_base: f64,
}
