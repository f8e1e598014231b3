//! How long single calls took.

use std::time::Duration;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;

/// The spans of many calls, in nanoseconds and to three digits.
#[derive(Clone, Debug)]
pub(super) struct Latency(Histogram<u64>);

impl Latency {
    pub(super) fn new() -> Result<Self> {
        Histogram::new(3).map(Self).context("no histogram of three digits")
    }

    /// Adds one span; the histogram grows with the longest.
    pub(super) fn add(&mut self, span: Duration) -> Result<()> {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.0.record(nanos).context("a span too long to be counted")
    }

    pub(super) fn add_all(&mut self, other: &Self) -> Result<()> {
        self.0.add(&other.0).context("histograms of one kind add up")
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The span that this share of the calls stayed below, from 0 to 1.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(share))
    }

    pub(super) fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_all_spans_that_were_added() {
        let (mut fast, mut slow) = (Latency::new().expect("fits"), Latency::new().expect("fits"));
        (0..99).for_each(|_| fast.add(Duration::from_nanos(100)).expect("fits"));
        slow.add(Duration::from_secs(1)).expect("fits");
        fast.add_all(&slow).expect("fits");
        assert_eq!((fast.count(), fast.quantile(0.5)), (100, Duration::from_nanos(100)));
        assert!(fast.max() >= Duration::from_secs(1), "a long span is not cut off");
    }
}
