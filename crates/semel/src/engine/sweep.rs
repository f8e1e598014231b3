//! The sweeper: forgets what is past its time, in bounded batches, for as long as it is wanted.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::semel::Semel;

/// How often to sweep, unless told otherwise.
const EVERY_DEFAULT: Duration = Duration::from_mins(1);
/// How many records to remove at a time, unless told otherwise.
const BATCH_DEFAULT: usize = 1_024;

/// How a sweeper is to be.
#[must_use = "nothing is swept until it is started"]
pub struct SweeperBuilder {
    semel: Semel,
    every: Duration,
    batch: usize,
}

/// What one round of a sweeper did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Which round it was: 1, 2, 3 …
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

/// A sweeper at work. It ends when it is stopped or dropped.
pub struct Sweeper {
    reports: watch::Receiver<SweepReport>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Semel {
    /// A sweeper for this engine's store: every 60 s in batches of 1,024, unless said. Any number of processes may
    /// sweep one store.
    pub fn sweeper(&self) -> SweeperBuilder {
        SweeperBuilder { semel: self.clone(), every: EVERY_DEFAULT, batch: BATCH_DEFAULT }
    }
}

impl SweeperBuilder {
    /// How often to sweep.
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// How many records to remove at a time.
    pub fn batch(mut self, records: usize) -> Self {
        self.batch = records.max(1);
        self
    }

    /// Starts sweeping, now and then every so often.
    pub fn start(self) -> Sweeper {
        let (report, reports) = watch::channel(SweepReport::default());
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            for round in 1.. {
                let done = self.round(round, &mut stopped).await;
                report.send_replace(done);
                tokio::select! {
                    biased;
                    _ = &mut stopped => return,
                    () = tokio::time::sleep(self.every) => {}
                }
            }
        });
        Sweeper { reports, stop: Some(stop), task }
    }

    /// Removes batch after batch until nothing is left, something fails, or the sweeper is stopped.
    async fn round(&self, round: u64, stopped: &mut oneshot::Receiver<()>) -> SweepReport {
        let started_at = Instant::now();
        let mut report = SweepReport { round, ..SweepReport::default() };
        loop {
            match self.semel.sweep(self.batch).await {
                Ok(swept) => {
                    report.removed = report.removed.saturating_add(swept.removed as u64);
                    report.batches = report.batches.saturating_add(1);
                    let is_wanted = matches!(stopped.try_recv(), Err(oneshot::error::TryRecvError::Empty));
                    if !swept.more_left || !is_wanted {
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
}

impl Sweeper {
    /// The last round's report, and every one from now on.
    pub fn reports(&self) -> watch::Receiver<SweepReport> {
        self.reports.clone()
    }

    /// Stops after the batch at hand, and hands back the last report.
    pub async fn stop(mut self) -> SweepReport {
        drop(self.stop.take());
        // The task ends by itself; if it panicked, its last report still stands.
        drop((&mut self.task).await);
        self.reports.borrow().clone()
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}
