//! Sweeping: removes records past their retention, in bounded batches.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::semel::Engine;
use crate::error::{Error, Result};

/// How often to sweep, if the builder does not say.
const EVERY_DEFAULT: Duration = Duration::from_mins(1);
/// How many records to remove at a time, if the builder does not say.
const BATCH_DEFAULT: usize = 1_024;

/// Whether, how often, and in which steps an engine sweeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct SweepPolicy {
    every: Option<Duration>,
    pub(super) batch: usize,
}

impl Default for SweepPolicy {
    fn default() -> Self {
        Self { every: Some(EVERY_DEFAULT), batch: BATCH_DEFAULT }
    }
}

impl SweepPolicy {
    pub(super) fn every(&mut self, every: Duration) {
        self.every = Some(every);
    }

    pub(super) fn never(&mut self) {
        self.every = None;
    }

    pub(super) fn batch(&mut self, records: usize) {
        self.batch = records;
    }

    /// Refuses what could never work, by the name of the setting.
    pub(super) fn checked(&self) -> Result<()> {
        if self.every.is_some_and(|every| every.is_zero()) {
            return Err(Error::invalid("sweep_every is zero; give a span, or use no_sweep"));
        }
        if self.batch == 0 {
            return Err(Error::invalid("sweep_batch is 0; nothing would ever be removed"));
        }
        Ok(())
    }

    /// When the first round starts: anywhere within a period, so that processes started together take turns.
    pub(super) fn first(&self, now: Instant) -> Option<Instant> {
        now.checked_add(self.every?.mul_f64(rand::random::<f64>()))
    }

    /// When the next round starts: after a period, give or take a tenth.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        now.checked_add(self.every?.mul_f64(0.9 + rand::random::<f64>() / 5.0))
    }
}

/// What one round of sweeping did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Which round it was: 1, 2, 3 …; 0 before the first.
    pub round: u64,
    /// How many records were removed.
    pub removed: u64,
    /// In how many batches.
    pub batches: u64,
    /// How long it took.
    pub took: Duration,
    /// Why it ended early, if it did. The next round tries again.
    pub error: Option<Box<str>>,
}

/// Removes batch after batch until nothing is left, something fails, or `is_over` says so.
pub(super) async fn sweep_round(
    engine: &Arc<Engine>,
    round: u64,
    batch: usize,
    is_over: impl Fn() -> bool,
) -> SweepReport {
    let started_at = Instant::now();
    let mut report = SweepReport { round, ..SweepReport::default() };
    loop {
        match engine.sweep(batch).await {
            Ok(swept) => {
                report.removed = report.removed.saturating_add(swept.removed as u64);
                report.batches = report.batches.saturating_add(1);
                if !swept.more_left || is_over() {
                    break;
                }
                // Callers first: a long round must not keep a thread to itself.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                tracing::warn!(%error, "semel: a sweep failed; the next round tries again");
                report.error = Some(error.to_string().into());
                break;
            }
        }
    }
    report.took = started_at.elapsed();
    tracing::debug!(removed = report.removed, batches = report.batches, "semel: swept");
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shortest and the longest of many spans, in periods.
    fn extremes(span: impl Fn(&SweepPolicy, Instant) -> Option<Instant>) -> (f64, f64) {
        let (policy, now) = (SweepPolicy::default(), Instant::now());
        let spans = (0..2_000).map(|_| span(&policy, now).unwrap().duration_since(now));
        let periods: Vec<_> = spans.map(|span| span.div_duration_f64(EVERY_DEFAULT)).collect();
        (periods.iter().copied().fold(f64::MAX, f64::min), periods.iter().copied().fold(0.0, f64::max))
    }

    #[test]
    fn rounds_come_after_a_period_give_or_take_a_tenth() {
        let (shortest, longest) = extremes(SweepPolicy::next);
        assert!(
            (0.9..0.91).contains(&shortest) && (1.09..=1.1).contains(&longest),
            "{shortest} to {longest}"
        );
    }

    #[test]
    fn the_first_round_comes_anywhere_within_a_period() {
        let (shortest, longest) = extremes(SweepPolicy::first);
        assert!(
            (0.0..0.02).contains(&shortest) && (0.98..=1.0).contains(&longest),
            "{shortest} to {longest}"
        );
    }
}
