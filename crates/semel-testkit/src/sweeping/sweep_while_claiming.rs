//! Claims without and with sweepers at work.

use std::sync::Arc;
use std::time::Duration;

use semel::Result;
use semel::store::Store;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::claimer::Claimers;
use super::preload::{BATCH, preload, present};
use super::report::{Latency, Report};
use crate::sample;

/// How long the records that are to be swept must be kept.
const KEEP: Duration = Duration::from_millis(1);
/// How many records must outlive the sweepers.
const LASTING: usize = 1_000;
/// How long a sweeper may take in all before it is taken for stuck.
const PATIENCE: Duration = Duration::from_mins(10);

/// Puts so many records past their keep into a store, has claimers at work alone for a time, and then together with
/// sweepers until nothing is left to sweep.
///
/// Each sweeper and each claimer has its own handle to the one store; nobody else may sweep it meanwhile.
pub async fn sweep_while_claiming(
    sweepers: &[Arc<dyn Store>],
    claimers: &[Arc<dyn Store>],
    expired: usize,
    quiet: Duration,
) -> Result<Report> {
    let mut report = Report { expired, ..Report::default() };
    let Some(store) = claimers.first() else { return Ok(report) };
    let started_at = Instant::now();
    let mut lasting = preload(store, LASTING, sample::LONG).await?;
    let past = preload(store, expired, KEEP).await?;
    report.preloaded_for = started_at.elapsed();
    // The last records are past their keep a moment from now, as every other will be.
    tokio::time::sleep(KEEP * 2).await;

    let alone = Claimers::start(claimers)?;
    tokio::time::sleep(quiet).await;
    let alone = alone.stop().await;
    report.quiet = Latency::of(alone.took);

    let together = Claimers::start(claimers)?;
    let started_at = Instant::now();
    sweep(sweepers, &mut report).await;
    report.swept_for = started_at.elapsed();
    let together = together.stop().await;
    report.sweeping = Latency::of(together.took);

    report.errors.extend(alone.errors.into_iter().chain(together.errors));
    lasting.extend(alone.done.into_iter().chain(together.done));
    report.missing = lasting.len() - present(store, &lasting).await?;
    report.left = present(store, &past).await?.max(expired.saturating_sub(report.removed));
    Ok(report)
}

/// Has all sweepers at work until each was told that nothing is left.
async fn sweep(sweepers: &[Arc<dyn Store>], report: &mut Report) {
    let mut at_work = JoinSet::new();
    for store in sweepers.iter().map(Arc::clone) {
        at_work.spawn(async move { tokio::time::timeout(PATIENCE, sweep_all(&*store)).await });
    }
    while let Some(swept) = at_work.join_next().await {
        match swept {
            Ok(Ok(Ok(removed))) => report.removed += removed,
            Ok(Ok(Err(error))) => report.errors.push(format!("a sweeper was told {error:?}")),
            Ok(Err(_)) => report.errors.push("a sweeper never came to an end".to_owned()),
            Err(error) => report.errors.push(format!("a sweeper broke off: {error}")),
        }
    }
}

async fn sweep_all(store: &dyn Store) -> Result<usize> {
    let mut removed = 0;
    loop {
        let swept = store.sweep(BATCH).await?.value;
        removed += swept.removed;
        if !swept.more_left {
            return Ok(removed);
        }
    }
}
