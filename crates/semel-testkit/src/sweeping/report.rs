//! What was seen while sweepers and claimers were at work.

use std::fmt;
use std::time::Duration;

/// How long claims took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// How many there were.
    pub claims: usize,
    /// Half of them took no longer.
    pub p50: Duration,
    /// All but one in a hundred took no longer.
    pub p99: Duration,
    /// None took longer.
    pub max: Duration,
}

impl Latency {
    pub(super) fn of(mut spans: Vec<Duration>) -> Self {
        spans.sort_unstable();
        let last = spans.len().saturating_sub(1);
        let at = |percent: usize| spans.get(last * percent / 100).copied().unwrap_or_default();
        Self { claims: spans.len(), p50: at(50), p99: at(99), max: at(100) }
    }
}

/// What was seen while sweepers and claimers were at work.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many records were past their keep at the start.
    pub expired: usize,
    /// How many the sweepers say that they removed.
    pub removed: usize,
    /// How many of those that should be gone are still there.
    pub left: usize,
    /// How many are gone that should be there.
    pub missing: usize,
    /// How long it took to put the records there.
    pub preloaded_for: Duration,
    /// How long the sweepers took.
    pub swept_for: Duration,
    /// Claims while nobody swept.
    pub quiet: Latency,
    /// Claims while the sweepers were at work.
    pub sweeping: Latency,
    /// What went wrong, in words for people: a deadlock among them.
    pub errors: Vec<String>,
}

impl Report {
    /// Whether all that was past its keep is gone, all else is there, and nobody met an error.
    pub fn is_clean(&self) -> bool {
        self.left == 0 && self.missing == 0 && self.errors.is_empty()
    }

    /// How many times longer the slowest claims took while sweeping: the ratio of the p99s.
    pub fn slowdown(&self) -> f64 {
        self.sweeping.p99.as_secs_f64() / self.quiet.p99.as_secs_f64().max(f64::EPSILON)
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} claims, p50 {:?}, p99 {:?}, max {:?}", self.claims, self.p50, self.p99, self.max)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} records put there in {:?}", self.expired, self.preloaded_for)?;
        writeln!(
            f,
            "{} removed in {:?}; {} left, {} missing",
            self.removed, self.swept_for, self.left, self.missing
        )?;
        writeln!(f, "quiet:    {}", self.quiet)?;
        write!(f, "sweeping: {}, p99 {:.2} times as long", self.sweeping, self.slowdown())?;
        self.errors.iter().try_for_each(|error| write!(f, "\nerror: {error}"))
    }
}
