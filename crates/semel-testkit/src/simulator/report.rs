//! What came of one seed.

use std::fmt;

/// What came of one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// A digest of every event in order: the same seed gives the same one.
    pub trace_hash: [u8; 32],
    /// How many events there were.
    pub events: u64,
    /// How many runs were granted.
    pub runs: u64,
    /// How many of them were beyond a record's first attempt.
    pub reruns: u64,
    /// How many claims were answered with a stored outcome.
    pub replays: u64,
    /// How many processes crashed in the middle of a run.
    pub crashes: u64,
    /// How many permits turned out to be lost.
    pub lost: u64,
    /// How many writes the resource refused for their fence.
    pub fenced_off: u64,
    /// What must not have happened.
    pub violations: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {} events, {} runs ({} again), {} replays, {} crashes, {} lost, {} fenced off, {} violations",
            self.seed,
            self.events,
            self.runs,
            self.reruns,
            self.replays,
            self.crashes,
            self.lost,
            self.fenced_off,
            self.violations.len()
        )?;
        self.violations.iter().try_for_each(|violation| write!(f, "\n  {violation}"))
    }
}
