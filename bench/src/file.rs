//! The measurement of the durable store, beside general embedded databases.
//!
//! - [`life`](Task): steps in the life of a store, each in a process of its own.
//! - [`open_loop`]: how long calls wait at a fixed rate of requests. [`growth`]: one store at several sizes.

mod growth;
mod life;
mod open_loop;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use semel_file::FileStore;
use tokio::runtime::Runtime;

use crate::args::{FileArgs, Part, word};
use crate::callers::{
    CYCLES, Entry, THREADS, at_least_best_peer, columns, groups, panel, runtime, until_quiet,
};
use crate::contestants::{Engine, StoreAlone};
use crate::databases::{self, Database, Fjall, GroupCommit, Redb, Sqlite};
use crate::folder::{TempFolder, filesystem};
use crate::report::{
    Bar, Case, ChartBar, Column, HUNDREDTHS, MIB, Metric, Page, Panel, Row, Rows, Sample, TENTHS,
    THOUSANDTHS, WHOLE, count, drive, grouped,
};
use crate::timing::{OtherProcesses, Stopwatch};
use life::{CLEAN_STOP, KILLED};
pub(crate) use life::{Task, run_task};

const CALLERS: [u64; 3] = [1, 64, 1_024];
const SEMEL: &str = Store::SemelFile.name();
const SYNCS: &str = "syncs";
const IN_PLACE: Case = Case::new(SYNCS, "blocks in place");
const GROWING: Case = Case::new(SYNCS, "growing file");
const OPENING: &str = "opening";
const EXPIRY: &str = "removing";
const DISK: &str = "disk";
const BLOCK: [u8; 4_096] = [0x5e; 4_096];
const IN_PLACE_BYTES: u64 = 64 << 20;
const LOADED_TOGETHER: u64 = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Store {
    /// The durable store, driven by the machine directly.
    SemelFile,
    /// The same through the engine's public API.
    SemelEngine,
    Fjall,
    Redb,
    Sqlite,
    SqlitePerCall,
}

impl Store {
    const ALL: [Self; 6] =
        [Self::SemelFile, Self::SemelEngine, Self::Fjall, Self::Redb, Self::Sqlite, Self::SqlitePerCall];
    /// One for each format on the disk: what is true of these is true of the others.
    const FORMATS: [Self; 4] = [Self::SemelFile, Self::Fjall, Self::Redb, Self::Sqlite];

    const fn name(self) -> &'static str {
        match self {
            Self::SemelFile => "semel file",
            Self::SemelEngine => "semel file, engine",
            Self::Fjall => "fjall, group commit",
            Self::Redb => "redb, group commit",
            Self::Sqlite => "SQLite, group commit",
            Self::SqlitePerCall => "SQLite, per call",
        }
    }

    /// Opens what is in the folder, which has `keys` done keys.
    fn open(self, folder: &Path, keys: u64) -> Result<Entry> {
        self.entry(folder, keys, None)
    }

    /// Fills an empty folder with `keys` done keys; it stays open.
    fn load(self, folder: &Path, keys: u64, runtime: &Runtime) -> Result<Entry> {
        self.entry(folder, keys, Some(runtime))
    }

    fn entry(self, folder: &Path, keys: u64, loader: Option<&Runtime>) -> Result<Entry> {
        let semel = || {
            let store = StoreAlone::new(FileStore::open(folder)?);
            if let Some(runtime) = loader {
                runtime.block_on(fill(&store, keys, || ()))?;
            }
            anyhow::Ok(store)
        };
        let keys_to_load = loader.map_or(0, |_| keys);
        let grouped = |contestant| Ok(Entry::new(self.name(), contestant, keys));
        match self {
            Self::SemelFile => Ok(Entry::new(self.name(), semel()?, keys)),
            Self::SemelEngine => Ok(Entry::new(self.name(), Engine::new(semel()?.into_store()), keys)),
            Self::Fjall => grouped(loaded(Fjall::open(folder)?, keys_to_load, usize::MAX)?),
            Self::Redb => grouped(loaded(Redb::open(folder)?, keys_to_load, usize::MAX)?),
            Self::Sqlite => grouped(loaded(Sqlite::open(folder)?, keys_to_load, usize::MAX)?),
            Self::SqlitePerCall => grouped(loaded(Sqlite::open(folder)?, keys_to_load, 1)?),
        }
    }
}

/// Claims and completes the keys below `keys`; `step` is called after each batch.
async fn fill(store: &StoreAlone<FileStore>, keys: u64, step: impl Fn()) -> Result<()> {
    for first in (0..keys).step_by(usize::try_from(LOADED_TOGETHER)?) {
        store.fill(first..keys.min(first + LOADED_TOGETHER)).await?;
        step();
    }
    Ok(())
}

fn loaded(mut database: impl Database, keys: u64, calls_max: usize) -> Result<GroupCommit> {
    databases::fill(&mut database, keys)?;
    GroupCommit::new(database, calls_max)
}

pub(crate) fn run(args: &FileArgs) -> Result<()> {
    let folder = TempFolder::under(args.folder.as_deref())?;
    let filesystem = filesystem(folder.path(), "name a folder on a disk with --folder")?;
    eprintln!("stores are made in {}, {filesystem}", folder.path().display());
    let mut page = Page::new("file", include_str!("pages/file.md"), args)?;
    page.fact("filesystem", filesystem);
    if args.has(Part::Throughput) {
        measure_throughput(args, &folder, &mut page)?;
        describe_throughput(&mut page);
    }
    if args.has(Part::OpenLoop) {
        open_loop::measure(args, &folder, &mut page.rows)?;
        open_loop::describe(&mut page);
    }
    if args.has(Part::Reopen) || args.has(Part::Memory) {
        life::measure_openings(args, &folder, &mut page.rows)?;
        describe_openings(&mut page, &|part| args.has(part));
    }
    if args.has(Part::Expiry) {
        life::measure_expiry(args, &folder, &mut page.rows)?;
        describe_expiry(&mut page);
    }
    if args.has(Part::Growth) {
        growth::measure(args, &folder, &mut page.rows)?;
        growth::describe(&mut page, args);
    }
    if args.has(Part::Disk) {
        life::measure_disk(args, &folder, &mut page.rows)?;
        describe_disk(&mut page, args.keys);
    }
    drop(folder);
    page.is_part = !args.only.is_empty();
    page.publish(args.run.results.as_deref())
}

/// Loads all contestants, then measures them and the raw disk in all rounds.
fn measure_throughput(args: &FileArgs, folder: &TempFolder, page: &mut Page) -> Result<()> {
    let (runtime, mut entries) = (runtime(THREADS)?, Vec::new());
    let loading = Store::ALL.map(|store| (Case::new("loading", store.name()), store)).into();
    drive(1, &[loading], &mut page.rows, &mut |_, store| {
        entries.push(store.load(&folder.fresh(&word(store))?, args.keys, &runtime)?);
        Ok(Vec::new())
    })?;
    let raw = folder.fresh("raw-sync")?;
    let mut in_place = SyncedFile::create(&raw.join("in-place"), Some(IN_PLACE_BYTES))?;
    let mut growing = SyncedFile::create(&raw.join("growing"), None)?;
    until_quiet();
    let others = OtherProcesses::watch();
    let span = Duration::from_millis(args.window_ms);
    // The raw disk right before the windows of one lone caller, which are compared with it.
    let cycles = groups(&entries, &[CYCLES], &CALLERS).into_iter();
    let cycles = cycles.map(|group| group.into_iter().map(|(case, entry)| (case, Some(entry))).collect());
    let groups: Vec<Vec<_>> = [vec![(IN_PLACE, None)]].into_iter().chain(cycles).collect();
    drive(args.run.rounds, &groups, &mut page.rows, &mut |case, entry| {
        let Some(entry) = entry else {
            let syncs = [(IN_PLACE, in_place.per_second(span)?), (GROWING, growing.per_second(span)?)];
            return Ok(syncs.map(|(case, rate)| (case, Sample::from([(Metric::PerSecond, rate)]))).into());
        };
        Ok(vec![(case, entry.window(case, &runtime, span)?)])
    })?;
    let others = format!("{:.0}% of the machine during cycles", others.share() * 100.0);
    page.fact("kernel and other processes", others);
    drop(entries);
    folder.clear()
}

/// What the disk does without any store: 4 KiB at the next position of a file, and a sync.
struct SyncedFile {
    file: File,
    at: u64,
    end: u64,
}

impl SyncedFile {
    /// A file that grows, or, with an end, one whose blocks are all allocated.
    fn create(path: &Path, end: Option<u64>) -> Result<Self> {
        let file = File::options().create(true).truncate(true).write(true).open(path)?;
        for at in (0..end.unwrap_or(0)).step_by(BLOCK.len()) {
            file.write_all_at(&[0; BLOCK.len()], at)?;
        }
        file.sync_all()?;
        Ok(Self { file, at: 0, end: end.unwrap_or(u64::MAX) })
    }

    fn per_second(&mut self, span: Duration) -> Result<f64> {
        let (watch, mut count) = (Stopwatch::start(), 0_u32);
        while watch.elapsed() < span {
            self.file.write_all_at(&BLOCK, self.at)?;
            self.file.sync_data()?;
            self.at = (self.at + BLOCK.len() as u64) % self.end;
            count += 1;
        }
        Ok(f64::from(count) / watch.elapsed().as_secs_f64())
    }
}

fn describe_throughput(page: &mut Page) {
    page.table(CYCLES, &columns("cycles/s", SEMEL));
    let syncs = [
        Column::contestant(),
        Column::median("per second", Metric::PerSecond, WHOLE),
        Column::range(Metric::PerSecond, WHOLE),
    ];
    page.table(SYNCS, &syncs);
    for callers in CALLERS {
        page.panel(panel(&page.rows, "Cycles (claim and complete)", CYCLES, callers));
    }
    page.bars.extend(throughput_bars(&page.rows));
}

fn throughput_bars(rows: &Rows) -> [Bar; 7] {
    let [one, some, many] = CALLERS.map(|callers| Case::new(CYCLES, SEMEL).load(callers));
    let engine = |case: Case| case.contestant(Store::SemelEngine.name());
    let per_call = many.contestant(Store::SqlitePerCall.name());
    let through_engine = |case: Case| {
        let name = format!("cycles through the engine, {}", count(case.load, "caller"));
        rows.at_least(name, 0.9, engine(case), case)
    };
    // A cycle has two syncs.
    let share = rows.times(one, IN_PLACE, Metric::PerSecond) * 2.0;
    let peers = at_least_best_peer(rows, engine(many), 3.5);
    [
        at_least_best_peer(rows, many, 3.0),
        Bar { name: "cycles through the engine, 1,024 callers".to_owned(), ..peers },
        through_engine(many),
        rows.at_least("cycles, 1,024 callers".to_owned(), 30.0, many, per_call),
        at_least_best_peer(rows, some, 1.5),
        through_engine(some),
        Bar::at_least("cycles, 1 caller".to_owned(), 0.9, share, "× half the raw sync rate"),
    ]
}

fn describe_openings(page: &mut Page, has: &dyn Fn(Part) -> bool) {
    let columns = [
        Column::text("", |case| case.contestant.to_owned()),
        Column::load("keys"),
        Column::text("left by", |case| case.setting.to_owned()),
        Column::median("seconds", Metric::Seconds, THOUSANDTHS),
        Column::range(Metric::Seconds, THOUSANDTHS),
        Column::median("resident bytes", Metric::ResidentBytes, WHOLE),
        Column::median("anonymous", Metric::AnonymousBytes, WHOLE),
        Column::median("allocated in Rust", Metric::AllocatedBytes, WHOLE),
    ];
    page.table(OPENING, &columns);
    let keys = |row: &Row| format!("{} keys", grouped(row.case.load));
    let seconds =
        |row: &Row| (row.case.setting.to_owned(), ChartBar::of(row, Metric::Seconds, HUNDREDTHS, &keys(row)));
    let rows = page.rows.of(OPENING);
    page.panel(Panel::new("Opening, until the first answer", "seconds: less is better", rows, seconds));
    let bytes = |row: &Row| ("1 key".to_owned(), ChartBar::of(row, Metric::ResidentBytes, WHOLE, &keys(row)));
    let clean = page.rows.of(OPENING).filter(|row| row.case.setting == CLEAN_STOP);
    page.panel(Panel::new("Memory of an open store", "resident bytes a key: less is better", clean, bytes));
    page.bars.extend(opening_bars(&page.rows, has));
}

fn opening_bars(rows: &Rows, has: &dyn Fn(Part) -> bool) -> Vec<Bar> {
    let own = rows.of(OPENING).filter(|row| has(Part::Reopen) && row.case.contestant == SEMEL);
    let bar = |row: &Row| {
        let wanted = if row.case.setting == KILLED { 1.5 } else { 0.7 };
        let name = format!("opening {} keys after {}", grouped(row.case.load), row.case.setting);
        Bar::at_most(name, wanted, row.median(Metric::Seconds), " s")
    };
    own.map(bar).collect()
}

fn describe_expiry(page: &mut Page) {
    let columns = [
        Column::contestant(),
        Column::median("keys", Metric::Keys, WHOLE),
        Column::median("seconds", Metric::Seconds, THOUSANDTHS),
        Column::median("longest batch ms", Metric::LongestBatchMs, TENTHS),
        Column::median("disk MiB before", Metric::DiskBytesBefore, MIB),
        Column::median("after", Metric::DiskBytes, MIB),
        Column::median("memory MiB before", Metric::GrownBytesBefore, MIB),
        Column::median("after", Metric::GrownBytes, MIB),
    ];
    page.table(EXPIRY, &columns);
    let bar = |row: &Row| ("all keys".to_owned(), ChartBar::of(row, Metric::Seconds, HUNDREDTHS, ""));
    let title = "Removing all keys after their retention";
    page.panel(Panel::new(title, "seconds: less is better", page.rows.of(EXPIRY), bar));
    page.bars.extend(expiry_bars(&page.rows));
}

fn expiry_bars(rows: &Rows) -> [Bar; 2] {
    let semel = Case::new(EXPIRY, SEMEL);
    let share = rows.times(semel, semel.contestant(Store::Sqlite.name()), Metric::Seconds);
    let name = "removing all keys after their retention".to_owned();
    let left = rows.median(semel, Metric::GrownBytes) / rows.median(semel, Metric::GrownBytesBefore);
    let memory = "memory left when all keys are removed".to_owned();
    [
        Bar::at_most(name, 1.0, share * 100.0, "% of SQLite's time"),
        Bar::at_most(memory, 25.0, left * 100.0, "% of what the store took"),
    ]
}

fn describe_disk(page: &mut Page, keys: u64) {
    let columns = [
        Column::text(SEMEL, |case| format!("look {}", case.load)),
        Column::median("live records", Metric::LiveRecords, WHOLE),
        Column::median("live MiB", Metric::LiveBytes, MIB),
        Column::median("disk MiB", Metric::DiskBytes, MIB),
        Column::median("disk by live", Metric::DiskPerLive, HUNDREDTHS),
    ];
    page.value("churned", grouped(life::records_churned(keys)));
    page.table(DISK, &columns);
    page.bars.push(disk_bar(&page.rows));
}

fn disk_bar(rows: &Rows) -> Bar {
    let worst = rows.of(DISK).map(|row| row.median(Metric::DiskPerLive)).fold(f64::NAN, f64::max);
    Bar::at_most("disk used in a steady state, the worst look".to_owned(), 2.5, worst, "× live data")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::refuses_a_second_claim;
    use crate::inputs::Response;
    use crate::report::{rates, reached};

    #[test]
    fn throughput_is_judged_by_the_best_peer_and_the_raw_disk() {
        let of = |store: Store, callers| Case::new(CYCLES, store.name()).load(callers);
        let rows = rates(&[
            (of(Store::SemelFile, 1_024), &[348.0]),
            (of(Store::SemelEngine, 1_024), &[320.0]),
            (of(Store::Fjall, 1_024), &[120.0]),
            (of(Store::Redb, 1_024), &[29.0]),
            (of(Store::SqlitePerCall, 1_024), &[11.0]),
            (of(Store::SemelFile, 64), &[1.6]),
            (of(Store::SemelEngine, 64), &[1.4]),
            (of(Store::Fjall, 64), &[1.0]),
            (of(Store::SemelFile, 1), &[79.0]),
            (IN_PLACE, &[200.0]),
        ]);
        let bars = throughput_bars(&rows);
        assert_eq!(reached(&bars), [false, false, true, true, true, false, false], "{bars:?}");
        assert!(bars[0].wanted.ends_with(Store::Fjall.name()), "{}", bars[0].wanted);
    }

    #[test]
    fn what_was_not_measured_of_the_durable_store_is_not_reached() {
        let rows = Rows::default();
        assert_eq!(reached(&throughput_bars(&rows)), [false; 7]);
        assert_eq!(reached(&expiry_bars(&rows)), [false; 2]);
        assert!(!disk_bar(&rows).reached);
    }

    #[test]
    fn openings_are_judged_by_how_the_store_was_left() {
        let mut rows = Rows::default();
        for (left, seconds) in [(CLEAN_STOP, 0.8), (KILLED, 1.4)] {
            let sample = Sample::from([(Metric::Seconds, seconds)]);
            rows.add(Case::new(OPENING, SEMEL).setting(left).load(10), sample);
        }
        assert_eq!(reached(&opening_bars(&rows, &|_| true)), [false, true]);
        assert!(opening_bars(&rows, &|part| part == Part::Memory).is_empty());
    }

    #[test]
    fn removing_is_judged_beside_sqlite_and_the_disk_by_its_worst_look() {
        let mut rows = Rows::default();
        for (store, seconds) in [(Store::SemelFile, 0.6), (Store::Sqlite, 60.0)] {
            let grown = [(Metric::GrownBytesBefore, 100.0), (Metric::GrownBytes, 26.0)];
            let sample = [(Metric::Seconds, seconds)].into_iter().chain(grown).collect();
            rows.add(Case::new(EXPIRY, store.name()), sample);
        }
        assert_eq!(reached(&expiry_bars(&rows)), [true, false]);
        for (number, disk_bytes) in [(1, 200), (2, 260)] {
            rows.add(Case::new(DISK, SEMEL).load(number), life::look(1, 100, disk_bytes));
        }
        assert!(!disk_bar(&rows).reached);
    }

    #[test]
    fn no_contestant_runs_a_key_twice_and_each_hands_back_the_outcome() {
        let folder = TempFolder::for_test("claims");
        let fresh = |name: &str| folder.fresh(name).unwrap();
        let (runtime, bytes) = (runtime(2).unwrap(), Response::new().encoded().len());
        let store = StoreAlone::new(FileStore::open(fresh("store")).unwrap());
        refuses_a_second_claim(("store", bytes), &runtime, &store);
        let engine = Engine::new(FileStore::open(fresh("engine")).unwrap());
        refuses_a_second_claim(("engine", bytes), &runtime, &engine);
        let grouped = [
            ("sqlite", loaded(Sqlite::open(&fresh("sqlite")).unwrap(), 0, usize::MAX).unwrap()),
            ("per call", loaded(Sqlite::open(&fresh("per-call")).unwrap(), 0, 1).unwrap()),
            ("fjall", loaded(Fjall::open(&fresh("fjall")).unwrap(), 0, usize::MAX).unwrap()),
            ("redb", loaded(Redb::open(&fresh("redb")).unwrap(), 0, usize::MAX).unwrap()),
        ];
        for (name, contestant) in &grouped {
            refuses_a_second_claim((name, bytes), &runtime, contestant);
        }
    }

    #[test]
    fn every_contestant_is_loaded_works_and_knows_its_keys() {
        let folder = TempFolder::for_test("loads");
        let runtime = runtime(2).unwrap();
        let bytes = Response::new().encoded().len();
        for store in Store::ALL {
            let entry = store.load(&folder.fresh(&word(&store)).unwrap(), 3_000, &runtime).unwrap();
            let plan = crate::callers::Plan { work: CYCLES, callers: 64, span: Duration::from_millis(60) };
            let sample = entry.loaded.window(&runtime, plan).unwrap();
            assert!(sample[&Metric::PerSecond] > 0.0, "{store:?}: {sample:?}");
            assert!(sample[&Metric::P50Us] <= sample[&Metric::P99Us], "{store:?}: {sample:?}");
            // The first, the last that was loaded, and the first of the window.
            for number in [0, 2_999, 3_000] {
                assert_eq!(entry.loaded.replay(&runtime, number).unwrap(), bytes, "{store:?}, key {number}");
            }
        }
    }
}
