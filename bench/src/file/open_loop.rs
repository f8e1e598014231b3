//! Load that does not wait for answers: every request has a time at which it is to be sent, and waits from that time on,
//! however late the store lets it go. A closed loop of callers sends less while the store pauses, and so hides the pause.
//!
//! In a process of its own; records pass their retention, are swept and reclaimed, and segments change meanwhile.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use semel::Semel;
use semel::store::Store as _;
use semel_file::FileStore;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::life::in_own_process;
use super::{Store, Task, fill};
use crate::args::{FileArgs, FileTaskArgs};
use crate::callers::{THREADS, runtime, until_quiet};
use crate::contestants::{Claimed, Contestant, Engine, StoreAlone};
use crate::folder::TempFolder;
use crate::inputs::{NAMES_MAX, Response, scattered};
use crate::report::{Bar, Case, Column, MS, Metric, Page, Row, Rows, Sample, WHOLE, drive, float};
use crate::timing::Stopwatch;

const OPEN_LOOP: &str = "open_loop";
const CLAIM: &str = "claim";
const COMPLETE: &str = "complete";
/// Percent of the rate that callers in a closed loop reached just before.
const SHARES: [u64; 2] = [50, 80];
const CLOSED_LOOP_CALLERS: u64 = 1_024;
/// How many windows long the closed loop and each open loop are.
const CLOSED_LOOP_WINDOWS: u32 = 6;
const OPEN_LOOP_WINDOWS: u32 = 20;
const RETENTION: Duration = Duration::from_secs(3);
const SWEEP_EVERY: Duration = Duration::from_millis(250);
const SWEEP_BATCH: usize = 1_024;
/// How often due requests are sent.
const SEND_EVERY: Duration = Duration::from_micros(500);
/// One request in so many is followed by a duplicate of an older key.
const DUPLICATE_EVERY: u64 = 10;
const LONGEST_MS: f64 = 50.0;

/// Measures the store alone, and the engine over it.
pub(super) fn measure(args: &FileArgs, folder: &TempFolder, rows: &mut Rows) -> Result<()> {
    let stores = [Store::SemelFile, Store::SemelEngine];
    let cases = stores.map(|store| (Case::new(OPEN_LOOP, store.name()), store)).into();
    drive(1, &[cases], rows, &mut |case, store| {
        let samples = in_own_process(Task::OpenLoop, *store, folder, args)?;
        let kinds = SHARES.into_iter().flat_map(|share| [(share, CLAIM), (share, COMPLETE)]);
        let of = |((share, kind), sample)| (case.setting(kind).load(share), sample);
        Ok(kinds.zip(samples).map(of).collect())
    })
}

pub(super) fn describe(page: &mut Page) {
    let columns = [
        Column::text("", |case| case.contestant.to_owned()),
        Column::text("load", |case| format!("{}%", case.load)),
        Column::text("call", |case| case.setting.to_owned()),
        Column::median("sent/s", Metric::PerSecond, WHOLE),
        Column::median("p50 ms", Metric::P50Us, MS),
        Column::median("p99 ms", Metric::P99Us, MS),
        Column::median("p99.9 ms", Metric::P999Us, MS),
        Column::median("longest ms", Metric::LongestUs, MS),
        Column::median("duplicates", Metric::Replays, WHOLE),
        Column::median("records removed", Metric::Removed, WHOLE),
        Column::median("segments begun", Metric::Segments, WHOLE),
    ];
    page.table(OPEN_LOOP, &columns);
    page.bars.extend(bars(&page.rows));
}

/// No claim waits longer than this, whatever else the store does meanwhile.
fn bars(rows: &Rows) -> Vec<Bar> {
    let is_claim = |row: &&Row| row.case.setting == CLAIM;
    let bar = |row: &Row| {
        let name = format!("longest claim at {}% load, {}", row.case.load, row.case.contestant);
        let bar = Bar::at_most(name, LONGEST_MS, row.median(Metric::LongestUs) / 1e3, " ms");
        let most = row.median(Metric::P999Us) / 1e3;
        Bar { found: format!("{} (p99.9 {most:.1} ms)", bar.found), ..bar }
    };
    rows.of(OPEN_LOOP).filter(is_claim).map(bar).collect()
}

/// The other side: one sample for each share and call.
pub(super) fn run(args: &FileTaskArgs) -> Result<Vec<Sample>> {
    let runtime = runtime(THREADS)?;
    let loaded = StoreAlone::new(FileStore::open(&args.folder)?);
    runtime.block_on(fill(&loaded, args.keys, || ()))?;
    until_quiet();
    let removed = Arc::new(AtomicU64::default());
    if args.store == Store::SemelEngine {
        let _in_runtime = runtime.enter();
        let engine = Semel::builder(loaded.into_store()).retention(RETENTION).sweep_every(SWEEP_EVERY);
        let engine = Engine::over(engine.build()?, Response::new().encoded());
        return measure_load(args, &runtime, &Load::new(engine, args.keys), &removed);
    }
    let load = Load::new(loaded.retention(RETENTION), args.keys);
    let is_over = Arc::new(AtomicBool::new(false));
    let sweeper = runtime.spawn(sweep(Arc::clone(&load), Arc::clone(&is_over), Arc::clone(&removed)));
    let samples = measure_load(args, &runtime, &load, &removed);
    is_over.store(true, Ordering::Relaxed);
    runtime.block_on(sweeper)??;
    samples
}

/// Sweeps as an engine does.
async fn sweep(
    load: Arc<Load<StoreAlone<FileStore>>>,
    is_over: Arc<AtomicBool>,
    removed: Arc<AtomicU64>,
) -> Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        tokio::time::sleep(SWEEP_EVERY).await;
        loop {
            let swept = load.contestant.store().sweep(SWEEP_BATCH).await?.value;
            removed.fetch_add(swept.removed as u64, Ordering::Relaxed);
            if !swept.more_left {
                break;
            }
        }
    }
    Ok(())
}

fn measure_load<C: Contestant>(
    args: &FileTaskArgs,
    runtime: &Runtime,
    load: &Arc<Load<C>>,
    removed: &AtomicU64,
) -> Result<Vec<Sample>> {
    let window = Duration::from_millis(args.window_ms);
    // What a store does for long has to include that records expire, are swept, and make room.
    load.closed_loop(runtime, RETENTION + window)?;
    let capacity = load.closed_loop(runtime, window * CLOSED_LOOP_WINDOWS)?;
    let mut samples = Vec::new();
    for share in SHARES {
        until_quiet();
        let (segment, swept) = (newest_segment(&args.folder)?, removed.load(Ordering::Relaxed));
        let rate = capacity * float(share) / 100.0;
        let mut calls = load.open_loop(runtime, rate, window * OPEN_LOOP_WINDOWS)?;
        let begun = newest_segment(&args.folder)? - segment;
        let removed = removed.load(Ordering::Relaxed) - swept;
        for sample in &mut calls {
            sample.insert(Metric::Segments, float(begun));
            if matches!(args.store, Store::SemelFile) {
                sample.insert(Metric::Removed, float(removed));
            }
        }
        samples.extend(calls);
    }
    Ok(samples)
}

/// Segments are numbered in their names, in hex.
fn newest_segment(folder: &Path) -> Result<u64> {
    let numbers = fs::read_dir(folder)?.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        u64::from_str_radix(name.strip_suffix(".log")?, 16).ok()
    });
    numbers.max().context("a store has a segment")
}

struct Load<C> {
    contestant: C,
    /// Keys below this are done.
    keys: u64,
    /// The next key that was never claimed.
    next: AtomicU64,
}

/// How long one request waited, in microseconds.
struct Waited {
    claim_us: u64,
    complete_us: u64,
    is_followed_by_duplicate: bool,
}

impl<C: Contestant> Load<C> {
    fn new(contestant: C, keys: u64) -> Arc<Self> {
        Arc::new(Self { contestant, keys, next: AtomicU64::new(keys) })
    }

    /// Cycles a second of callers that each wait for their answers.
    fn closed_loop(self: &Arc<Self>, runtime: &Runtime, span: Duration) -> Result<f64> {
        let (watch, mut callers) = (Stopwatch::start(), JoinSet::new());
        for _ in 0..CLOSED_LOOP_CALLERS {
            let load = Arc::clone(self);
            let work = async move {
                let mut done = 0;
                while watch.elapsed() < span {
                    // In a task of its own, as in the open loop: both pay for it.
                    let load = Arc::clone(&load);
                    let request = async move { load.request(watch, watch.elapsed()).await };
                    tokio::spawn(request).await.context("a request did not reach its end")??;
                    done += 1;
                }
                anyhow::Ok(done)
            };
            callers.spawn_on(work, runtime.handle());
        }
        let mut cycles = 0;
        while let Some(done) = runtime.block_on(callers.join_next()) {
            cycles += done.context("a caller did not reach its end")??;
        }
        Ok(float(cycles) / watch.elapsed().as_secs_f64())
    }

    /// Sends evenly at this rate, whatever is answered; the samples of claims and of completes.
    fn open_loop(self: &Arc<Self>, runtime: &Runtime, rate: f64, span: Duration) -> Result<[Sample; 2]> {
        let (watch, mut requests, mut tally) = (Stopwatch::start(), JoinSet::new(), Tally::new()?);
        let mut due = Duration::ZERO;
        let gap = Duration::from_secs_f64(1.0 / rate.max(1.0));
        while due < span {
            while due <= watch.elapsed() && due < span {
                let load = Arc::clone(self);
                requests.spawn_on(async move { load.request(watch, due).await }, runtime.handle());
                due += gap;
            }
            while let Some(done) = requests.try_join_next() {
                tally.add(&done.context("a request did not reach its end")??)?;
            }
            sleep(SEND_EVERY);
        }
        while let Some(done) = runtime.block_on(requests.join_next()) {
            tally.add(&done.context("a request did not reach its end")??)?;
        }
        tally.samples(watch.elapsed())
    }

    /// A claim and a complete of a new key. The claim waits from `due` on, the complete from the answer to the claim.
    async fn request(&self, watch: Stopwatch, due: Duration) -> Result<Waited> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        ensure!(number < NAMES_MAX, "the names of keys are used up: ask for shorter windows");
        let Claimed::Run(run) = self.contestant.claim(number).await? else {
            bail!("key {number} was not to be run");
        };
        let claimed = watch.elapsed();
        self.contestant.complete(run).await?;
        let completed = watch.elapsed();
        let is_followed_by_duplicate = number.is_multiple_of(DUPLICATE_EVERY);
        if is_followed_by_duplicate {
            self.contestant.replay(scattered(number, self.keys)).await?;
        }
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let (claim_us, complete_us) =
            (micros(claimed.saturating_sub(due)), micros(completed.saturating_sub(claimed)));
        Ok(Waited { claim_us, complete_us, is_followed_by_duplicate })
    }
}

struct Tally {
    claims: Histogram<u64>,
    completes: Histogram<u64>,
    duplicates: u64,
}

impl Tally {
    fn new() -> Result<Self> {
        let histogram = || Histogram::<u64>::new(3);
        Ok(Self { claims: histogram()?, completes: histogram()?, duplicates: 0 })
    }

    fn add(&mut self, waited: &Waited) -> Result<()> {
        self.claims.record(waited.claim_us)?;
        self.completes.record(waited.complete_us)?;
        self.duplicates += u64::from(waited.is_followed_by_duplicate);
        Ok(())
    }

    fn samples(&self, took: Duration) -> Result<[Sample; 2]> {
        ensure!(!self.claims.is_empty(), "nothing was sent: ask for longer windows");
        Ok([&self.claims, &self.completes].map(|spans| {
            Sample::from([
                (Metric::PerSecond, float(spans.len()) / took.as_secs_f64()),
                (Metric::P50Us, float(spans.value_at_quantile(0.5))),
                (Metric::P99Us, float(spans.value_at_quantile(0.99))),
                (Metric::P999Us, float(spans.value_at_quantile(0.999))),
                (Metric::LongestUs, float(spans.max())),
                (Metric::Replays, float(self.duplicates)),
            ])
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::roomy;
    use crate::report::reached;

    #[test]
    fn one_claim_that_waits_longer_misses_the_bar_of_its_load() {
        let mut rows = Rows::default();
        for (share, longest_us) in [(50, 49_900.0), (80, 50_100.0)] {
            let sample = Sample::from([(Metric::LongestUs, longest_us), (Metric::P999Us, 9_000.0)]);
            rows.add(Case::new(OPEN_LOOP, "semel file").setting(CLAIM).load(share), sample.clone());
            rows.add(Case::new(OPEN_LOOP, "semel file").setting(COMPLETE).load(share), sample);
        }
        let bars = bars(&rows);
        assert_eq!(reached(&bars), [true, false], "{bars:?}");
        assert_eq!(bars[1].found, "50.10 ms (p99.9 9.0 ms)");
    }

    /// A contestant that stands still once: requests that were due meanwhile wait, although none was sent.
    struct Pausing(StoreAlone<semel::store::MemoryStore>);

    impl Contestant for Pausing {
        type Run = <StoreAlone<semel::store::MemoryStore> as Contestant>::Run;

        async fn claim(&self, number: u64) -> Result<Claimed<Self::Run>> {
            if number == 100 {
                sleep(Duration::from_millis(60));
            }
            self.0.claim(number).await
        }

        async fn complete(&self, run: Self::Run) -> Result<()> {
            self.0.complete(run).await
        }
    }

    #[test]
    fn a_pause_counts_for_every_request_that_was_due_in_it() {
        let contestant = Pausing(StoreAlone::new(roomy()));
        let load = Load::new(contestant, 1);
        let runtime = runtime(1).unwrap();
        runtime.block_on(async {
            let Claimed::Run(run) = load.contestant.claim(0).await.unwrap() else { panic!("key 0 is new") };
            load.contestant.complete(run).await.unwrap();
        });
        let [claims, _] = load.open_loop(&runtime, 1_000.0, Duration::from_millis(300)).unwrap();
        assert!(claims[&Metric::LongestUs] >= 60_000.0, "{claims:?}");
        // 60 of 300 were due in the pause, and three of them waited nearly as long as the first.
        assert!(claims[&Metric::P99Us] >= 40_000.0, "{claims:?}");
        assert!((29.0..=31.0).contains(&claims[&Metric::Replays]), "{claims:?}");
    }
}
