//! One store at several sizes: what a key takes of memory and disk, how long opening and reading take, and the rate.
//!
//! Each size is written once; what follows is done to the same folder, each in a process of its own.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Result, ensure};
use semel::store::{Scan, Store as _};
use semel_file::FileStore;

use super::life::{CLEAN_STOP, KILLED, arguments, fill_and_kill};
use super::{SEMEL, Store, Task};
use crate::args::{FileArgs, FileTaskArgs};
use crate::callers::{CYCLES, Plan, THREADS, runtime, until_quiet};
use crate::folder::{TempFolder, disk_bytes};
use crate::process::{SemelProgram, samples_of};
use crate::report::{
    Bar, Case, ChartBar, Column, Metric, Page, Panel, Row, Rows, Sample, THOUSANDTHS, WHOLE, count, drive,
    float, grouped,
};
use crate::timing::Stopwatch;

const GROWTH: &str = "growth";
/// How many times as many keys the large store has, if no sizes are given.
const LARGE_TIMES: u64 = 5;
const OPENINGS: u64 = 3;
const CALLERS: u64 = 1_024;
/// How many records `semel keys list` shows, and how many a page of a count has.
const LISTED: usize = 100;
const COUNTED: usize = 1_024;
/// Each task claims keys of its own: so many are left to the one before.
const KEYS_BETWEEN_TASKS: u64 = 1_000_000;
const BYTES_MOST: f64 = 48.0;

/// The sizes that are measured, and the two that have bars: that of the other parts, and the large one.
fn sizes(args: &FileArgs) -> Vec<u64> {
    if args.growth.is_empty() { vec![args.keys, args.keys * LARGE_TIMES] } else { args.growth.clone() }
}

pub(super) fn measure(args: &FileArgs, folder: &TempFolder, rows: &mut Rows) -> Result<()> {
    let cases = sizes(args).into_iter().map(|keys| (Case::new(GROWTH, SEMEL).load(keys), ())).collect();
    let program = SemelProgram::new(args.semel.as_deref());
    drive(1, &[cases], rows, &mut |case, ()| {
        let samples = measure_size(args, folder, &program, case.load)?;
        Ok(samples.into_iter().map(|sample| (case, sample)).collect())
    })
}

fn measure_size(
    args: &FileArgs,
    folder: &TempFolder,
    program: &SemelProgram,
    keys: u64,
) -> Result<Vec<Sample>> {
    let path = folder.fresh("growth")?;
    let with = |task, first| arguments(task, Store::SemelFile, &path, (keys, first), args);
    let of = |task| with(task, keys);
    samples_of(&of(Task::Fill))?;
    let bytes = float(disk_bytes(&path)?) / float(keys);
    let mut samples = vec![Sample::from([(Metric::DiskBytes, bytes)])];
    for _ in 0..OPENINGS {
        samples.extend(samples_of(&of(Task::Open))?);
    }
    samples.push(Sample::from([
        (Metric::ListSeconds, seconds_of(program, &["keys", "list"], &path, &of(Task::List))?),
        (Metric::StatsSeconds, seconds_of(program, &["stats"], &path, &of(Task::Count))?),
    ]));
    samples.extend(samples_of(&of(Task::Cycle))?);
    for time in 1..=OPENINGS {
        fill_and_kill(&with(Task::GoOn, keys + time * KEYS_BETWEEN_TASKS))?;
        let opened = samples_of(&of(Task::Open))?.into_iter();
        let killed = opened.filter_map(|sample| sample.get(&Metric::Seconds).copied());
        samples.extend(killed.map(|seconds| Sample::from([(Metric::SecondsAfterKill, seconds)])));
    }
    fs::remove_dir_all(&path)?;
    Ok(samples)
}

/// By the program, where it is built; otherwise by the same calls of the library, in a process of their own.
fn seconds_of(program: &SemelProgram, command: &[&str], folder: &Path, task: &[String]) -> Result<f64> {
    if let Some(mut line) = program.command(command, folder) {
        let watch = Stopwatch::start();
        let output = line.stdin(Stdio::null()).output()?;
        let seconds = watch.elapsed().as_secs_f64();
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return Ok(seconds);
    }
    let sample = samples_of(task)?.into_iter().next();
    Ok(sample.and_then(|sample| sample.get(&Metric::Seconds).copied()).unwrap_or(f64::NAN))
}

/// The other side: opens the store and reads one page of it, or all.
pub(super) fn read(args: &FileTaskArgs) -> Result<Sample> {
    let runtime = runtime(THREADS)?;
    let watch = Stopwatch::start();
    let store = FileStore::open(&args.folder)?;
    let limit = if args.task == Task::List { LISTED } else { COUNTED };
    let (mut after, mut records) = (None, 0);
    loop {
        let page = runtime.block_on(store.scan(Scan { after, limit, ..Scan::default() }))?.value;
        records += page.records.len();
        after = page.next;
        if after.is_none() || args.task == Task::List {
            break;
        }
    }
    let seconds = watch.elapsed().as_secs_f64();
    ensure!(records > 0, "no record was read");
    Ok(Sample::from([(Metric::Seconds, seconds)]))
}

/// Windows of cycles, one a round.
pub(super) fn cycle(args: &FileTaskArgs) -> Result<Vec<Sample>> {
    let runtime = runtime(THREADS)?;
    let entry = args.store.open(&args.folder, args.keys)?;
    until_quiet();
    let span = Duration::from_millis(args.window_ms);
    let plan = Plan { work: CYCLES, callers: CALLERS, span };
    (0..args.rounds).map(|_| entry.loaded.window(&runtime, plan)).collect()
}

pub(super) fn describe(page: &mut Page, args: &FileArgs) {
    let columns = [
        Column::load("keys"),
        Column::median("cycles/s", Metric::PerSecond, WHOLE),
        Column::range(Metric::PerSecond, WHOLE),
        Column::median("resident bytes a key", Metric::ResidentBytes, WHOLE),
        Column::median("disk bytes a key", Metric::DiskBytes, WHOLE),
        Column::median("opening s", Metric::Seconds, THOUSANDTHS),
        Column::median("after kill -9", Metric::SecondsAfterKill, THOUSANDTHS),
        Column::median("list s", Metric::ListSeconds, THOUSANDTHS),
        Column::median("stats s", Metric::StatsSeconds, THOUSANDTHS),
    ];
    page.table(GROWTH, &columns);
    let by = if SemelProgram::new(args.semel.as_deref()).is_there() {
        "`semel keys list` and `semel stats` of the built program"
    } else {
        "the calls of the library that `semel keys list` and `semel stats` make"
    };
    page.value("read_by", by);
    let further = bytes_of_a_further_key(&page.rows)
        .map(|bytes| format!("\nEach further key takes {bytes:.0} resident bytes of {SEMEL}."));
    page.value("further_key", further.unwrap_or_default());
    for (title, axis, metric) in [
        ("Growth: memory", "resident bytes a key: less is better", Metric::ResidentBytes),
        ("Growth: cycles, 1,024 callers", "per second: more is better", Metric::PerSecond),
        ("Growth: opening after a clean stop", "seconds: less is better", Metric::Seconds),
        ("Growth: opening after kill -9", "seconds: less is better", Metric::SecondsAfterKill),
    ] {
        let shown = if axis.starts_with("seconds") { THOUSANDTHS } else { WHOLE };
        let bar = |row: &Row| (count(row.case.load, "key"), ChartBar::of(row, metric, shown, ""));
        page.panel(Panel::new(title, axis, page.rows.of(GROWTH), bar));
    }
    page.bars.extend(bars(&page.rows, args));
}

fn bars(rows: &Rows, args: &FileArgs) -> Vec<Bar> {
    let mut bars = Vec::new();
    for row in rows.of(GROWTH) {
        let keys = count(row.case.load, "key");
        let bar = |what: &str, most, metric, unit| {
            Bar::at_most(format!("{what}, {keys}"), most, row.median(metric), unit)
        };
        let memory = bar("resident memory a key", BYTES_MOST, Metric::ResidentBytes, " bytes");
        let allocated = row.median(Metric::AllocatedBytes);
        bars.push(Bar { found: format!("{} ({allocated:.0} of the allocator)", memory.found), ..memory });
        if row.case.load == args.keys {
            bars.push(bar("semel keys list", 0.2, Metric::ListSeconds, " s"));
            bars.push(bar("semel stats", 1.0, Metric::StatsSeconds, " s"));
        }
        if row.case.load == args.keys * LARGE_TIMES {
            bars.push(bar(&format!("opening after {CLEAN_STOP}"), 0.7, Metric::Seconds, " s"));
            bars.push(bar(&format!("opening after {KILLED}"), 1.5, Metric::SecondsAfterKill, " s"));
        }
    }
    bars.extend(rate_bar(rows));
    bars
}

/// The rate of the largest store, beside that of the smallest.
fn rate_bar(rows: &Rows) -> Option<Bar> {
    let small = rows.of(GROWTH).min_by_key(|row| row.case.load)?;
    let large = rows.of(GROWTH).max_by_key(|row| row.case.load)?;
    let times = large.median(Metric::PerSecond) / small.median(Metric::PerSecond);
    let beside = format!("× those with {}", grouped(small.case.load));
    let name = format!("cycles with {}", count(large.case.load, "key"));
    Some(Bar::at_least(name, 0.7, times, &beside))
}

/// By the smallest and the largest store: what a store takes whatever its size is left out.
fn bytes_of_a_further_key(rows: &Rows) -> Option<f64> {
    let sizes = || rows.of(GROWTH).map(|row| (row.case.load, row.median(Metric::ResidentBytes)));
    let (small, large) = (sizes().min_by_key(|size| size.0)?, sizes().max_by_key(|size| size.0)?);
    let all = |(keys, bytes): (u64, f64)| float(keys) * bytes;
    (large.0 > small.0).then(|| (all(large) - all(small)) / float(large.0 - small.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::reached;

    fn args(keys: u64, growth: &[u64]) -> FileArgs {
        let run = crate::args::RunArgs { rounds: 1, results: None };
        let growth = growth.to_vec();
        FileArgs { run, keys, growth, window_ms: 10, only: Vec::new(), semel: None, folder: None }
    }

    fn rows(sizes: &[(u64, f64)]) -> Rows {
        let mut rows = Rows::default();
        for (keys, bytes) in sizes {
            let sample = Sample::from([
                (Metric::ResidentBytes, *bytes),
                (Metric::AllocatedBytes, 40.0),
                (Metric::PerSecond, 1_000.0 / bytes),
                (Metric::Seconds, 0.6),
                (Metric::SecondsAfterKill, 1.6),
                (Metric::ListSeconds, 0.1),
                (Metric::StatsSeconds, 1.1),
            ]);
            rows.add(Case::new(GROWTH, SEMEL).load(*keys), sample);
        }
        rows
    }

    #[test]
    fn a_size_is_judged_by_the_bars_that_name_it() {
        let bars = bars(&rows(&[(10, 50.0), (50, 48.0)]), &args(10, &[]));
        let names: Vec<&str> = bars.iter().map(|bar| bar.name.as_str()).collect();
        assert_eq!(reached(&bars), [false, true, false, true, true, false, true], "{names:?}");
    }

    #[test]
    fn a_further_key_leaves_out_what_every_store_takes() {
        // 600 bytes for 10 keys and 2,600 for 50.
        assert_eq!(bytes_of_a_further_key(&rows(&[(10, 60.0), (50, 52.0)])), Some(50.0));
        assert_eq!(bytes_of_a_further_key(&rows(&[(10, 60.0)])), None);
    }

    #[test]
    fn sizes_are_those_that_were_asked_for() {
        assert_eq!(sizes(&args(10, &[])), [10, 50]);
        assert_eq!(sizes(&args(10, &[7, 9])), [7, 9]);
    }
}
