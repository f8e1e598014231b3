//! How much disk a store takes whose records come and go: as many come as pass their retention.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use semel::clock::Clock;
use semel::codec::encode;
use semel::store::{Scan, Store};
use tokio::task::JoinSet;

use super::expiry::BATCH;
use super::folder::{TempFolder, disk_bytes};
use super::movable::MovableClock;
use super::results::{Disk, DiskSample};
use super::task::{THREADS, Task, ask, in_a_process_of_its_own};
use super::who::Who;
use crate::args::FileAsk;
use crate::contestants::{Contestant, StoreAlone, file};
use crate::runtime::runtime;

const CALLERS: u64 = 1_024;
/// How many steps a record lives; the clock moves a second with every step.
const RETENTION_STEPS: u64 = 50;
const STEP: Duration = Duration::from_secs(1);
/// How often all records have come and gone: half of it before the first look, so that the state is a steady one.
const GENERATIONS: u64 = 4;
/// How many steps there are between two looks at the disk.
const LOOK_EVERY: u64 = 10;

type Churned = StoreAlone<file::FileStore>;

/// Measures the durable store with about `keys` live records.
pub(super) fn measure(keys: u64, folder: &TempFolder, bar: &ProgressBar) -> Result<Disk> {
    bar.set_message("records come and go");
    let place = folder.fresh("disk")?;
    let disk = in_a_process_of_its_own(&ask(Task::Churn, Who::SemelFile, &place, keys))?;
    fs::remove_dir_all(&place)?;
    bar.inc(1);
    Ok(disk)
}

/// The other side: lets records come and go, and looks at the disk.
pub(super) fn churn(ask: &FileAsk) -> Result<Disk> {
    let runtime = runtime(THREADS)?;
    let clock = MovableClock::new();
    let retention = STEP * u32::try_from(RETENTION_STEPS)?;
    let store = Arc::new(StoreAlone::new(file::open_at(&ask.folder, clock.clone())?).retention(retention));
    let (steps, cycles) = (GENERATIONS * RETENTION_STEPS, ask.keys / RETENTION_STEPS);
    let mut samples = Vec::new();
    for step in 1..=steps {
        clock.pass(STEP);
        runtime
            .block_on(async { tokio::try_join!(work(&store, (step - 1) * cycles, cycles), sweep(&store)) })?;
        if step > steps / 2 && step.is_multiple_of(LOOK_EVERY) {
            let (live_records, live_bytes) = runtime.block_on(live(&store, &clock))?;
            samples.push(DiskSample { live_records, live_bytes, disk_bytes: disk_bytes(&ask.folder)? });
        }
    }
    Ok(Disk { written: steps * cycles, samples })
}

/// Many callers, until so many new keys from `first` on are done.
async fn work(store: &Arc<Churned>, first: u64, cycles: u64) -> Result<()> {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS.min(cycles) {
        let store = Arc::clone(store);
        callers.spawn(async move {
            for number in (caller..cycles).step_by(usize::try_from(CALLERS)?) {
                store.cycle(first + number).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done.context("a caller did not reach its end")??;
    }
    Ok(())
}

/// Removes what is past its retention, while the callers work.
async fn sweep(store: &Churned) -> Result<()> {
    while store.store().sweep(BATCH).await?.value.more_left {}
    Ok(())
}

/// How many records count, and how many bytes they have.
async fn live(store: &Churned, clock: &MovableClock) -> Result<(u64, u64)> {
    let (mut records, mut bytes, mut after) = (0, 0, None);
    loop {
        let page = store.store().scan(Scan { after, limit: BATCH, ..Scan::default() }).await?.value;
        for record in page.records.iter().filter(|record| record.is_live(clock.now())) {
            records += 1;
            bytes += encode(record)?.len() as u64;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    ensure!(records > 0, "no record counts any more");
    Ok((records, bytes))
}
