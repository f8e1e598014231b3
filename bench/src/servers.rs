//! The measurements of stores on servers, beside what is usually written for them.
//!
//! - [`postgres`] and [`redis`]: the servers, and the contestants on each.
//! - [`Census`]: what a server holds at the end, against what callers were answered.

mod postgres;
mod redis;
use std::time::Duration;

use anyhow::{Result, ensure};
use semel::store::{Scan, Store};
use tokio::runtime::Runtime;

use crate::args::ServerArgs;
use crate::callers::{self, CYCLES, Entry, REPLAYS, columns, groups, panel, until_quiet};
use crate::contestants::{Engine, StoreAlone};
use crate::inputs::{BODY_BYTES, Response};
use crate::report::{
    Case, ChartBar, Column, Metric, Page, Panel, Row, Rows, Sample, WHOLE, count, drive, float,
};
pub(crate) use postgres::{run as run_postgres, version as postgres_version};
pub(crate) use redis::{run as run_redis, version as redis_version};

/// What semel is called among the contestants.
const SEMEL: &str = "semel";
const CALLERS: [u64; 3] = [1, 32, 256];
const COUNTED: &str = "counted";
const LOADED_TOGETHER: usize = 1_024;
const SCANNED_TOGETHER: usize = 1_000;

/// The engine over this store, which is loaded first. Like the others, it asks its server each time.
async fn load_semel(store: impl Store + Clone, keys: u64) -> Result<Entry> {
    let outcome = Response::new().body;
    let loader = StoreAlone::new(store.clone()).outcome(outcome.clone());
    for numbers in batches(keys) {
        loader.fill(numbers).await?;
    }
    let semel = semel::Semel::builder(store).replays_kept(0, 0).build()?;
    Ok(Entry::new(SEMEL, Engine::over(semel, outcome), keys))
}

fn batches(keys: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    (0..keys).step_by(LOADED_TOGETHER).map(move |first| first..keys.min(first + LOADED_TOGETHER as u64))
}

fn measure(entries: &[Entry], args: &ServerArgs, runtime: &Runtime, page: &mut Page) -> Result<()> {
    until_quiet();
    page.fact_other_processes();
    let span = Duration::from_millis(args.window_ms);
    let groups = groups(entries, &[CYCLES, REPLAYS], &CALLERS);
    drive(args.run.rounds, &groups, &mut page.rows, &mut |case, entry| {
        Ok(vec![(case, entry.window(case, runtime, span)?)])
    })
}

fn describe(page: &mut Page) {
    page.table(CYCLES, &columns("cycles/s", SEMEL));
    page.table(REPLAYS, &columns("replays/s", SEMEL));
    let counted = [
        Column::contestant(),
        Column::median("keys loaded", Metric::KeysLoaded, WHOLE),
        Column::median("keys run", Metric::KeysRun, WHOLE),
        Column::median("replays", Metric::Replays, WHOLE),
    ];
    page.table(COUNTED, &counted);
    for callers in CALLERS {
        page.panel(panel(&page.rows, "Cycles (claim and complete)", CYCLES, callers));
    }
    let most = CALLERS[2];
    page.panel(panel(&page.rows, "Replays", REPLAYS, most));
    let rows = page.rows.of(CYCLES).filter(|row| row.case.load == most);
    let title = format!("CPU time of a cycle on the callers' side, {}", count(most, "caller"));
    let bar = |row: &Row| (row.case.setting.to_owned(), ChartBar::of(row, Metric::CpuUs, WHOLE, ""));
    page.panel(Panel::new(title, "microseconds: less is better", rows, bar));
}

/// What a server holds of one contestant's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Census {
    /// All records, whatever their state.
    records: u64,
    /// Those that have their whole outcome.
    done: u64,
    /// How many runs were granted for them, where that is kept.
    attempts: Option<u64>,
    /// How many replays were counted, where they are.
    duplicates: Option<u64>,
}

impl Census {
    /// Whether every key is there, ran once and is done, and no more replays were counted than were answered. Fewer may be:
    /// counts in records are a courtesy with a budget.
    fn agrees(self, loaded: u64, answers: callers::Answers) -> bool {
        let keys = loaded + answers.ran;
        (self.records, self.done) == (keys, keys)
            && self.attempts.is_none_or(|attempts| attempts == keys)
            && self.duplicates.is_none_or(|duplicates| duplicates <= answers.replayed)
    }
}

/// Counts what the server holds, and refuses what does not agree: a contestant that is quick because it does less fails
/// here.
fn check(
    entry: &Entry,
    loaded: u64,
    runtime: &Runtime,
    rows: &mut Rows,
    mut count: impl AsyncFnMut() -> Result<Census>,
) -> Result<()> {
    let answers = entry.loaded.answers();
    let found = runtime.block_on(count())?;
    ensure!(
        found.agrees(loaded, answers),
        "the server does not hold what the callers of {} were answered, so its numbers are void: {found:?}, {loaded} keys \
         loaded, {answers:?}",
        entry.name
    );
    let counts = [
        (Metric::KeysLoaded, float(loaded)),
        (Metric::KeysRun, float(answers.ran)),
        (Metric::Replays, float(answers.replayed)),
    ];
    rows.add(Case::new(COUNTED, entry.name).setting(entry.setting), Sample::from(counts));
    Ok(())
}

/// What a store of semel's holds, by its own account.
async fn census_of(store: &impl Store) -> Result<Census> {
    let (mut found, mut attempts, mut duplicates) = (Census::default(), 0, 0);
    let mut after = None;
    loop {
        let page = store.scan(Scan { after, limit: SCANNED_TOGETHER, ..Scan::default() }).await?.value;
        for record in &page.records {
            let is_whole = record.outcome().is_some_and(|outcome| outcome.bytes().len() == BODY_BYTES);
            found.records += 1;
            found.done += u64::from(record.state.kind() == semel::record::StateKind::Done && is_whole);
            attempts += u64::from(record.attempt);
            duplicates += record.duplicates.count;
        }
        after = page.next;
        if after.is_none() {
            return Ok(Census { attempts: Some(attempts), duplicates: Some(duplicates), ..found });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of cycles and of replays, in which callers get both kinds of answers.
    pub(super) fn work(entry: &Entry, runtime: &Runtime) {
        for work in [CYCLES, REPLAYS] {
            let plan = callers::Plan { work, callers: 8, span: Duration::from_millis(60) };
            assert!(entry.loaded.window(runtime, plan).unwrap()[&Metric::PerSecond] > 0.0);
        }
        let answers = entry.loaded.answers();
        assert!(answers.ran > 0 && answers.replayed > 0, "{answers:?}");
    }

    #[test]
    fn a_key_that_is_missing_unfinished_or_ran_twice_is_noticed() {
        let answers = callers::Answers { ran: 5, replayed: 3 };
        let right = Census { records: 15, done: 15, attempts: Some(15), duplicates: Some(3) };
        assert!(right.agrees(10, answers));
        assert!(Census { attempts: None, duplicates: None, ..right }.agrees(10, answers));
        for wrong in [
            Census { records: 14, done: 14, ..right },
            Census { done: 14, ..right },
            Census { attempts: Some(16), ..right },
            Census { duplicates: Some(4), ..right },
        ] {
            assert!(!wrong.agrees(10, answers), "{wrong:?}");
        }
    }
}
