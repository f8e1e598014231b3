//! Steps in the life of a store, each in a process of its own: memory that another one freed would hide what it takes.
//!
//! Opening after a clean stop and after kill -9, removing all keys after their retention, and the disk used by records that
//! come and go. The first half of this file starts the processes, the second half is what they do.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use semel::clock::{Clock, SystemClock};
use semel::store::{Scan, Store as _};
use semel_file::FileStore;
use semel_testkit::ManualClock;

use super::{DISK, EXPIRY, OPENING, SEMEL, Store, fill, growth, open_loop};
use crate::args::{FileArgs, FileTaskArgs, Part, word};
use crate::callers::{CYCLES, Entry, Plan, THREADS, each, runtime};
use crate::contestants::{Contestant, StoreAlone};
use crate::counting;
use crate::databases::{self, Database, Fjall, Redb, Sqlite};
use crate::folder::{TempFolder, disk_bytes};
use crate::process::{print_samples, samples_of, this_program};
use crate::report::{Case, Metric, Rows, Sample, drive, float};
use crate::timing::Stopwatch;

/// How a store was left before it was opened.
pub(super) const CLEAN_STOP: &str = "a clean stop";
pub(super) const KILLED: &str = "kill -9";
const OPENINGS: u64 = 3;
const LOOKED_UP: u64 = 1_000;
const BATCH: usize = 1_024;
const RETENTION: Duration = Duration::from_hours(1);
/// Callers of the store whose records come and go.
const CALLERS: u64 = 1_024;
/// How many steps a record lives whose store is looked at; the clock moves a second with every step.
const RETENTION_STEPS: u64 = 50;
const STEP: Duration = Duration::from_secs(1);
/// How often all records come and go: half of it before the first look, so that the state is steady.
const GENERATIONS: u64 = 4;
const LOOK_EVERY: u64 = 10;
/// What a second process prints when its keys are written.
const READY: &str = "ready";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Task {
    /// Write all keys, and stop cleanly.
    Fill,
    /// Write all keys, print so, and go on with others until killed.
    FillAndGoOn,
    Open,
    /// Write all keys, and remove them when they are past their retention.
    Expire,
    /// Open what is there, print so, and go on with new keys until killed.
    GoOn,
    /// Open what is there, and measure windows of cycles.
    Cycle,
    /// Open what is there, and read one page.
    List,
    /// Open what is there, and read every page.
    Count,
    Churn,
    /// Write all keys, then send requests at a fixed rate.
    OpenLoop,
}

/// The arguments of a task on a store with so many done keys, and the first key that no task claimed before.
pub(super) fn arguments(
    task: Task,
    store: Store,
    folder: &std::path::Path,
    (keys, first): (u64, u64),
    args: &FileArgs,
) -> [String; 8] {
    let numbers = [keys, args.run.rounds, args.window_ms, first];
    let [keys, rounds, window_ms, first] = numbers.map(|number| number.to_string());
    let folder = folder.display().to_string();
    ["file-task".to_owned(), word(&task), word(&store), folder, keys, rounds, window_ms, first]
}

/// Runs a task in a process and a folder of its own.
pub(super) fn in_own_process(
    task: Task,
    store: Store,
    folder: &TempFolder,
    args: &FileArgs,
) -> Result<Vec<Sample>> {
    let path = folder.fresh("life")?;
    let samples = samples_of(&arguments(task, store, &path, (args.keys, args.keys), args))?;
    fs::remove_dir_all(&path)?;
    Ok(samples)
}

/// Runs a task until it says that its keys are written, and kills it in the middle of what it goes on with.
pub(super) fn fill_and_kill(arguments: &[String]) -> Result<()> {
    let mut command = this_program()?;
    let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let output = child.stdout.take().context("the second process has an output")?;
    let read = BufReader::new(output).read_line(&mut line);
    child.kill().context("the second process cannot be killed")?;
    child.wait()?;
    read?;
    ensure!(line.trim() == READY, "the second process ended before its keys were written");
    Ok(())
}

/// Measures every way in which a store can have been left.
pub(super) fn measure_openings(args: &FileArgs, folder: &TempFolder, rows: &mut Rows) -> Result<()> {
    let of = |store: Store, left| (Case::new(OPENING, store.name()).setting(left).load(args.keys), store);
    let mut cases = Store::FORMATS.map(|store| of(store, CLEAN_STOP)).to_vec();
    if args.has(Part::Reopen) {
        cases.extend(Store::FORMATS.map(|store| of(store, KILLED)));
    }
    drive(1, &[cases], rows, &mut |case, store| {
        let is_killed = case.setting == KILLED;
        let mut samples = Vec::new();
        for time in 0..if is_killed && *store != Store::SemelFile { 1 } else { OPENINGS } {
            let path = folder.path().join("life");
            let arguments = |task| arguments(task, *store, &path, (case.load, case.load), args);
            // Opening repairs, so there is only one opening after each kill.
            if is_killed {
                folder.fresh("life")?;
                fill_and_kill(&arguments(Task::FillAndGoOn))?;
            } else if time == 0 {
                folder.fresh("life")?;
                samples_of(&arguments(Task::Fill))?;
            }
            samples.extend(samples_of(&arguments(Task::Open))?.into_iter().map(|sample| (case, sample)));
        }
        fs::remove_dir_all(folder.path().join("life"))?;
        Ok(samples)
    })
}

/// Measures how long it takes to remove all keys once they are past their retention.
pub(super) fn measure_expiry(args: &FileArgs, folder: &TempFolder, rows: &mut Rows) -> Result<()> {
    let cases = Store::FORMATS.map(|store| (Case::new(EXPIRY, store.name()), store)).into();
    drive(1, &[cases], rows, &mut |case, store| {
        let samples = in_own_process(Task::Expire, *store, folder, args)?;
        Ok(samples.into_iter().map(|sample| (case, sample)).collect())
    })
}

/// Measures the disk that the durable store takes with about `keys` live records.
pub(super) fn measure_disk(args: &FileArgs, folder: &TempFolder, rows: &mut Rows) -> Result<()> {
    drive(1, &[vec![(Case::new(DISK, SEMEL), Store::SemelFile)]], rows, &mut |case, store| {
        let looks = in_own_process(Task::Churn, *store, folder, args)?;
        Ok((1..).zip(looks).map(|(look, sample)| (case.load(look), sample)).collect())
    })
}

/// How many records come and go at about `keys` live ones.
pub(super) const fn records_churned(keys: u64) -> u64 {
    GENERATIONS * RETENTION_STEPS * (keys / RETENTION_STEPS)
}

/// The other side: does one task, and prints its samples.
pub(crate) fn run_task(args: &FileTaskArgs) -> Result<()> {
    match args.task {
        Task::Fill => {
            drop(args.store.load(&args.folder, args.keys, &runtime(THREADS)?)?);
            print_samples(&[])
        }
        Task::FillAndGoOn | Task::GoOn => go_on_until_killed(args),
        Task::Open => print_samples(&[open(args)?]),
        Task::Expire => print_samples(&[expire(args)?]),
        Task::Cycle => print_samples(&growth::cycle(args)?),
        Task::List | Task::Count => print_samples(&[growth::read(args)?]),
        Task::Churn => print_samples(&churn(args)?),
        Task::OpenLoop => print_samples(&open_loop::run(args)?),
    }
}

fn go_on_until_killed(args: &FileTaskArgs) -> Result<()> {
    // The process that was to kill this one may be gone itself.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    let runtime = runtime(THREADS)?;
    let entry = if args.task == Task::GoOn {
        let store = StoreAlone::new(FileStore::open(&args.folder)?);
        Entry::going_on(SEMEL, store, args.keys, args.first)
    } else {
        args.store.load(&args.folder, args.keys, &runtime)?
    };
    std::thread::spawn(|| {
        // It should be in the middle of something when it is killed.
        std::thread::sleep(Duration::from_millis(200));
        println!("{READY}");
        let _ = std::io::stdout().flush();
    });
    loop {
        let plan = Plan { work: CYCLES, callers: 64, span: Duration::from_millis(500) };
        entry.loaded.window(&runtime, plan)?;
    }
}

/// Opens what is there, up to the first answer, and looks whether the keys are there. Memory is for each key.
fn open(args: &FileTaskArgs) -> Result<Sample> {
    let runtime = runtime(THREADS)?;
    let [resident, anonymous] = counting::resident_bytes()?;
    counting::start();
    let watch = Stopwatch::start();
    let entry = args.store.open(&args.folder, args.keys)?;
    let bytes = entry.loaded.replay(&runtime, args.keys - 1)?;
    let seconds = watch.elapsed().as_secs_f64();
    let allocated = counting::allocated_bytes();
    let [resident_after, anonymous_after] = counting::resident_bytes()?;
    for turn in 0..LOOKED_UP {
        let found = entry.loaded.replay(&runtime, crate::inputs::scattered(turn, args.keys))?;
        ensure!(found == bytes, "an outcome has another length");
    }
    let keys = float(args.keys);
    Ok(Sample::from([
        (Metric::Seconds, seconds),
        (Metric::ResidentBytes, (resident_after - resident).max(0.0) / keys),
        (Metric::AnonymousBytes, (anonymous_after - anonymous).max(0.0) / keys),
        (Metric::AllocatedBytes, allocated / keys),
    ]))
}

/// Writes all keys, lets their time pass, and removes them.
fn expire(args: &FileTaskArgs) -> Result<Sample> {
    match args.store {
        Store::SemelFile | Store::SemelEngine => expire_records(args),
        Store::Fjall => expire_rows(Fjall::open(&args.folder)?, args),
        Store::Redb => expire_rows(Redb::open(&args.folder)?, args),
        Store::Sqlite | Store::SqlitePerCall => expire_rows(Sqlite::open(&args.folder)?, args),
    }
}

fn expire_records(args: &FileTaskArgs) -> Result<Sample> {
    let (runtime, clock) = (runtime(THREADS)?, ManualClock::at(SystemClock::new().now().as_micros()));
    let [resident, _] = counting::resident_bytes()?;
    let grown = || anyhow::Ok((counting::resident_bytes()?[0] - resident).max(0.0));
    let store = FileStore::builder(&args.folder).clock(clock.clone()).open()?;
    let store = StoreAlone::new(store).retention(RETENTION);
    // Time passes while keys are written, so that they do not all end at the same moment.
    runtime.block_on(fill(&store, args.keys, || clock.advance(Duration::from_millis(1))))?;
    clock.advance(RETENTION * 2);
    let grown_before = grown()?;
    let (_, mut sample) = sweep_all(args, || {
        let swept = runtime.block_on(store.store().sweep(BATCH))?.value;
        Ok((swept.removed, swept.more_left))
    })?;
    // It also forgets what it finds while it makes its log smaller, so the sweeps do not count all keys.
    let left = store.store().records();
    ensure!(left == 0, "{left} of {} keys are left", args.keys);
    sample.extend([(Metric::GrownBytesBefore, grown_before), (Metric::GrownBytes, grown()?)]);
    Ok(sample)
}

fn expire_rows(mut database: impl Database, args: &FileTaskArgs) -> Result<Sample> {
    let last_until_micros = databases::fill(&mut database, args.keys)?;
    let (removed, sample) = sweep_all(args, || {
        let removed = database.sweep(last_until_micros, BATCH)?;
        Ok((removed, removed == BATCH))
    })?;
    ensure!(removed == args.keys, "{removed} of {} keys were removed", args.keys);
    Ok(sample)
}

/// Sweeps a batch at a time, which returns how many were removed and whether there may be more.
fn sweep_all(args: &FileTaskArgs, mut sweep: impl FnMut() -> Result<(usize, bool)>) -> Result<(u64, Sample)> {
    let before = disk_bytes(&args.folder)?;
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
    let sample = Sample::from([
        (Metric::Seconds, watch.elapsed().as_secs_f64()),
        (Metric::Keys, float(args.keys)),
        (Metric::LongestBatchMs, longest.as_secs_f64() * 1e3),
        (Metric::DiskBytesBefore, float(before)),
        (Metric::DiskBytes, float(disk_bytes(&args.folder)?)),
    ]);
    Ok((all, sample))
}

type Churned = StoreAlone<FileStore>;

/// Lets as many records come as pass their retention, and looks at the disk.
fn churn(args: &FileTaskArgs) -> Result<Vec<Sample>> {
    let (runtime, clock) = (runtime(THREADS)?, ManualClock::at(SystemClock::new().now().as_micros()));
    let retention = STEP * u32::try_from(RETENTION_STEPS)?;
    let store = FileStore::builder(&args.folder).clock(clock.clone()).open()?;
    let store = Arc::new(StoreAlone::new(store).retention(retention));
    let (steps, cycles) = (GENERATIONS * RETENTION_STEPS, args.keys / RETENTION_STEPS);
    let mut samples = Vec::new();
    for step in 1..=steps {
        clock.advance(STEP);
        let first = (step - 1) * cycles;
        let run = move |store: Arc<Churned>, number| async move { store.cycle(first + number).await };
        let running = each(&store, usize::try_from(CALLERS)?, cycles, run);
        runtime.block_on(async { tokio::try_join!(running, sweep(&store)) })?;
        if step > steps / 2 && step.is_multiple_of(LOOK_EVERY) {
            let (records, bytes) = runtime.block_on(live(&store, &clock))?;
            samples.push(look(records, bytes, disk_bytes(&args.folder)?));
        }
    }
    Ok(samples)
}

/// One look at the disk: the encoded records that still count, and the bytes on the disk.
pub(super) fn look(live_records: u64, live_bytes: u64, disk_bytes: u64) -> Sample {
    Sample::from([
        (Metric::LiveRecords, float(live_records)),
        (Metric::LiveBytes, float(live_bytes)),
        (Metric::DiskBytes, float(disk_bytes)),
        (Metric::DiskPerLive, float(disk_bytes) / float(live_bytes)),
    ])
}

async fn sweep(store: &Churned) -> Result<()> {
    while store.store().sweep(BATCH).await?.value.more_left {}
    Ok(())
}

async fn live(store: &Churned, clock: &ManualClock) -> Result<(u64, u64)> {
    let (mut records, mut bytes, mut after) = (0, 0, None);
    loop {
        let page = store.store().scan(Scan { after, limit: BATCH, ..Scan::default() }).await?.value;
        for record in page.records.iter().filter(|record| record.is_live(clock.now())) {
            records += 1;
            bytes += semel::codec::encode(record)?.len() as u64;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    ensure!(records > 0, "no record counts any more");
    Ok((records, bytes))
}
