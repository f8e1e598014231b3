//! How long it takes to remove all keys once they are past their retention.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use indicatif::ProgressBar;
use semel::store::Store;

use super::folder::{TempFolder, disk_bytes};
use super::movable::MovableClock;
use super::results::{Expiry, Swept};
use super::task::{THREADS, Task, ask, in_a_process_of_its_own};
use super::who::{Who, fill};
use crate::args::FileAsk;
use crate::contestants::{StoreAlone, file};
use crate::databases::{self, Database, Fjall, Redb, Sqlite};
use crate::runtime::runtime;
use crate::stopwatch::Stopwatch;

/// How many keys are removed at a time.
pub(super) const BATCH: usize = 1_024;
const RETENTION: Duration = Duration::from_hours(1);

/// How far the bar goes for all of this.
pub(super) fn steps() -> u64 {
    Who::KEEPERS.len() as u64
}

/// Measures all who keep data in another way.
pub(super) fn measure(keys: u64, folder: &TempFolder, bar: &ProgressBar) -> Result<Vec<Expiry>> {
    let mut found = Vec::new();
    for who in Who::KEEPERS {
        bar.set_message(format!("sweeping {}", who.name()));
        let place = folder.fresh("expiry")?;
        let swept = in_a_process_of_its_own(&ask(Task::Expire, who, &place, keys))?;
        fs::remove_dir_all(&place)?;
        found.push(Expiry { contestant: who.name(), swept });
        bar.inc(1);
    }
    Ok(found)
}

/// The other side: writes all keys, lets their time pass, and removes them.
pub(super) fn expire(ask: &FileAsk) -> Result<Swept> {
    match ask.who {
        Who::SemelFile | Who::SemelEngine => expire_store(ask),
        Who::Fjall => expire_rows(Fjall::open(&ask.folder)?, ask),
        Who::Redb => expire_rows(Redb::open(&ask.folder)?, ask),
        Who::Sqlite | Who::SqlitePerCall => expire_rows(Sqlite::open(&ask.folder)?, ask),
    }
}

fn expire_store(ask: &FileAsk) -> Result<Swept> {
    let runtime = runtime(THREADS)?;
    let clock = MovableClock::new();
    let store = StoreAlone::new(file::open_at(&ask.folder, clock.clone())?).retention(RETENTION);
    // Time passes while keys are written, so that they do not all end at the same moment.
    runtime.block_on(fill(&store, ask.keys, |_| clock.pass(Duration::from_millis(1))))?;
    clock.pass(RETENTION * 2);
    let swept = sweep_all(&ask.folder, || {
        let swept = runtime.block_on(store.store().sweep(BATCH))?.value;
        Ok((swept.removed, swept.more_left))
    })?;
    // It also forgets by itself what it finds while it makes its log smaller, so the sweeps do not count them all.
    let left = store.store().records();
    ensure!(left == 0, "{left} of {} keys are left", ask.keys);
    Ok(Swept { removed: ask.keys, ..swept })
}

fn expire_rows(mut database: impl Database, ask: &FileAsk) -> Result<Swept> {
    let last_until_micros = databases::fill(&mut database, ask.keys, |_| ())?;
    let swept = sweep_all(&ask.folder, || {
        let removed = database.sweep(last_until_micros, BATCH)?;
        Ok((removed, removed == BATCH))
    })?;
    ensure!(swept.removed == ask.keys, "{} of {} keys were removed", swept.removed, ask.keys);
    Ok(swept)
}

/// Sweeps a batch at a time, which answers how many were removed and whether there may be more.
fn sweep_all(folder: &Path, mut sweep: impl FnMut() -> Result<(usize, bool)>) -> Result<Swept> {
    let disk_bytes_before = disk_bytes(folder)?;
    let (mut all, mut longest) = (0, Duration::ZERO);
    let watch = Stopwatch::start();
    loop {
        let batch = Stopwatch::start();
        let (removed, more_left) = sweep()?;
        longest = longest.max(batch.elapsed());
        all += removed as u64;
        if !more_left {
            break;
        }
    }
    Ok(Swept {
        removed: all,
        seconds: watch.elapsed().as_secs_f64(),
        longest_ms: longest.as_secs_f64() * 1e3,
        disk_bytes_before,
        disk_bytes_after: disk_bytes(folder)?,
    })
}
