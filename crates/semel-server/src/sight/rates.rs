//! Decisions a second, over the last 15 minutes.

use semel::Stats;

/// Samples of the engine's counters.
#[derive(Debug, Default)]
pub struct Rates;

/// What was decided between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// When it ended, in seconds since 1970, on this machine's clock.
    pub at: u64,
    /// How many of each in that time.
    pub decisions: Stats,
}

impl Rates {
    /// The samples of the last 15 minutes, oldest first.
    pub fn samples(&self) -> Vec<Sample> {
        Vec::new()
    }
}
