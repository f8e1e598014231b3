//! Many callers for a while: how much they get done, and how long they wait for it.
//!
//! The stores in a folder and on servers are measured in this way; so they share tables, panels and bars.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::contestants::{Claimed, Contestant};
use crate::inputs::{BODY_BYTES, NAMES_MAX, scattered};
use crate::report::{Bar, Case, ChartBar, Column, MS, Metric, Panel, Rows, Sample, WHOLE, count, float};
use crate::timing::{Stopwatch, processor_time};

pub(crate) const CYCLES: &str = "cycles";
pub(crate) const REPLAYS: &str = "replays";
pub(crate) const THREADS: usize = 2;
/// One new key in so many is followed by a duplicate of an older key.
const DUPLICATE_EVERY: u64 = 10;
const WARMING_UP: u8 = 0;
const COUNTED: u8 = 1;
const OVER: u8 = 2;

/// Tokio's threaded runtime, since that is where applications call from.
pub(crate) fn runtime(threads: usize) -> Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).enable_all().build().context("the runtime cannot start")
}

#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// [`CYCLES`] or [`REPLAYS`].
    pub(crate) work: &'static str,
    pub(crate) callers: u64,
    pub(crate) span: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answers {
    /// Permits to run a new key; all of these were completed.
    pub(crate) ran: u64,
    /// Outcomes of keys that were done.
    pub(crate) replayed: u64,
}

/// A contestant that is open and loaded, under its name in tables and charts.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// How its server is set, where there is more than one; contestants are compared within a setting.
    pub(crate) setting: &'static str,
    pub(crate) loaded: Box<dyn LoadedContestant>,
}

impl Entry {
    pub(crate) fn new(name: &'static str, contestant: impl Contestant, keys: u64) -> Self {
        Self::going_on(name, contestant, keys, keys)
    }

    /// One whose keys below `first` were claimed before, those below `keys` to their end.
    pub(crate) fn going_on(name: &'static str, contestant: impl Contestant, keys: u64, first: u64) -> Self {
        let (next, replays) = (AtomicU64::new(first), AtomicU64::default());
        let shared = Arc::new(Shared { contestant, keys, next, replays, phase: AtomicU8::new(OVER) });
        Self { name, setting: "", loaded: Box::new(Loaded { shared, answers: Mutex::default() }) }
    }

    pub(crate) fn window(&self, case: Case, runtime: &Runtime, span: Duration) -> Result<Sample> {
        self.loaded.window(runtime, Plan { work: case.work, callers: case.load, span })
    }
}

/// All cases of these entries, in groups of what is compared with each other.
pub(crate) fn groups<'a>(
    entries: &'a [Entry],
    works: &[&'static str],
    callers: &[u64],
) -> Vec<Vec<(Case, &'a Entry)>> {
    let of = |work: &&'static str, callers: u64| {
        let case = |entry: &Entry| Case::new(work, entry.name).setting(entry.setting).load(callers);
        entries.iter().map(|entry| (case(entry), entry)).collect()
    };
    callers.iter().flat_map(|callers| works.iter().map(move |work| of(work, *callers))).collect()
}

/// The table of cycles or replays; ratios are to this contestant of semel's.
pub(crate) fn columns(per_second: &str, semel: &'static str) -> [Column<'static>; 11] {
    let beside = move |case: Case| (case.contestant(semel), case);
    [
        Column::contestant(),
        Column::load("callers"),
        Column::median(per_second, Metric::PerSecond, WHOLE),
        Column::range(Metric::PerSecond, WHOLE),
        Column::median("with deferred work", Metric::PerSecondWithDeferred, WHOLE),
        Column::median("claim p50 ms", Metric::P50Us, MS),
        Column::median("p99 ms", Metric::P99Us, MS),
        Column::median("client CPU µs", Metric::CpuUs, WHOLE),
        Column::times(&format!("{semel} is"), Metric::PerSecond, beside),
        Column::times("with deferred work", Metric::PerSecondWithDeferred, beside),
        Column::times("its CPU is", Metric::CpuUs, beside),
    ]
}

/// The rates of all contestants with so many callers, one group for each setting.
pub(crate) fn panel(rows: &Rows, title: &str, work: &str, callers: u64) -> Panel {
    let rows = rows.of(work).filter(|row| row.case.load == callers);
    let axis = "per second: more is better; p99 is of a claim";
    Panel::new(format!("{title}, {}", count(callers, "caller")), axis, rows, |row| {
        (row.case.setting.to_owned(), ChartBar::rate(row))
    })
}

/// A bar on semel's rate, beside the peer that leaves it the least.
pub(crate) fn at_least_best_peer(rows: &Rows, semel: Case, wanted: f64) -> Bar {
    let times = times_peers(rows, semel, Metric::PerSecond);
    let hardest = times.min_by(|one, other| one.1.total_cmp(&other.1));
    let (peer, times) = hardest.unwrap_or(("the best peer", f64::NAN));
    Bar::at_least(title(semel.work, semel), wanted, times, &format!("× {peer}"))
}

/// A bar on the processor time of semel's callers, beside the peer that leaves it the least.
pub(crate) fn cpu_at_most_best_peer(rows: &Rows, semel: Case, wanted: f64) -> Bar {
    let hardest = times_peers(rows, semel, Metric::CpuUs).max_by(|one, other| one.1.total_cmp(&other.1));
    let (peer, times) = hardest.unwrap_or(("the best peer", f64::NAN));
    Bar::at_most(title("client CPU, cycles", semel), wanted, times, &format!("× {peer}"))
}

fn times_peers(rows: &Rows, semel: Case, metric: Metric) -> impl Iterator<Item = (&'static str, f64)> {
    let is_peer = move |case: &Case| {
        (case.setting, case.load) == (semel.setting, semel.load) && !case.contestant.starts_with("semel")
    };
    let peers = rows.of(semel.work).map(|row| row.case).filter(is_peer);
    peers.map(move |peer| (peer.contestant, rows.times(semel, peer, metric)))
}

fn title(what: &str, case: Case) -> String {
    let setting = if case.setting.is_empty() { "" } else { ", " };
    format!("{what}, {}{setting}{}", count(case.load, "caller"), case.setting)
}

/// What can be done with a contestant, whichever it is.
pub(crate) trait LoadedContestant {
    fn window(&self, runtime: &Runtime, plan: Plan) -> Result<Sample>;

    /// What callers were answered, in all windows.
    fn answers(&self) -> Answers;

    fn replay(&self, runtime: &Runtime, number: u64) -> Result<usize>;
}

struct Loaded<C> {
    shared: Arc<Shared<C>>,
    answers: Mutex<Answers>,
}

struct Shared<C> {
    contestant: C,
    /// Keys below this are done.
    keys: u64,
    /// The next key that was never claimed.
    next: AtomicU64,
    /// How many replays were asked for in windows of replays.
    replays: AtomicU64,
    phase: AtomicU8,
}

impl<C: Contestant> LoadedContestant for Loaded<C> {
    fn window(&self, runtime: &Runtime, plan: Plan) -> Result<Sample> {
        let (shared, ran, whole) = (&self.shared, processor_time(), Stopwatch::start());
        shared.phase.store(WARMING_UP, Ordering::SeqCst);
        let mut callers = JoinSet::new();
        for _ in 0..plan.callers {
            let caller = Caller { work: plan.work, shared: Arc::clone(shared), tally: Tally::default() };
            callers.spawn_on(caller.work(), runtime.handle());
        }
        sleep(plan.span / 3);
        shared.phase.store(COUNTED, Ordering::SeqCst);
        let watch = Stopwatch::start();
        sleep(plan.span);
        shared.phase.store(OVER, Ordering::SeqCst);
        let took = watch.elapsed();
        let mut tally = Tally::default();
        runtime.block_on(async {
            while let Some(done) = callers.join_next().await {
                tally.add(done.context("a caller did not reach its end")??);
            }
            shared.contestant.catch_up().await
        })?;
        let whole = whole.elapsed();
        until_quiet();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.ran += tally.answers.ran;
        answers.replayed += tally.answers.replayed;
        tally.sample(plan.work, took, whole, processor_time().saturating_sub(ran))
    }

    fn answers(&self) -> Answers {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replay(&self, runtime: &Runtime, number: u64) -> Result<usize> {
        runtime.block_on(self.shared.contestant.replay(number))
    }
}

struct Caller<C> {
    work: &'static str,
    shared: Arc<Shared<C>>,
    tally: Tally,
}

impl<C: Contestant> Caller<C> {
    async fn work(mut self) -> Result<Tally> {
        while self.shared.phase.load(Ordering::Relaxed) != OVER {
            if self.work == REPLAYS {
                let turn = self.shared.replays.fetch_add(1, Ordering::Relaxed);
                let watch = Stopwatch::start();
                self.replay(scattered(turn, self.shared.keys)).await?;
                self.claimed(watch.elapsed());
            } else {
                self.cycle().await?;
            }
        }
        Ok(self.tally)
    }

    async fn cycle(&mut self) -> Result<()> {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        ensure!(number < NAMES_MAX, "the names of keys are used up: ask for fewer rounds or shorter windows");
        let watch = Stopwatch::start();
        let Claimed::Run(run) = self.shared.contestant.claim(number).await? else {
            bail!("key {number} was not to be run");
        };
        self.claimed(watch.elapsed());
        self.shared.contestant.complete(run).await?;
        if self.is_counted() {
            self.tally.completes_counted += 1;
        }
        self.tally.answers.ran += 1;
        if number.is_multiple_of(DUPLICATE_EVERY) {
            self.replay(scattered(number, self.shared.keys)).await?;
        }
        Ok(())
    }

    /// Claims a key that is done; any answer but its whole outcome is an error.
    async fn replay(&mut self, number: u64) -> Result<()> {
        let bytes = self.shared.contestant.replay(number).await?;
        ensure!(bytes >= BODY_BYTES, "key {number} was replayed with {bytes} bytes");
        self.tally.answers.replayed += 1;
        Ok(())
    }

    /// Keeps how long a claim waited, if it fell into the time that is measured.
    fn claimed(&mut self, waited: Duration) {
        if self.is_counted() {
            self.tally.claims_us.push(u32::try_from(waited.as_micros()).unwrap_or(u32::MAX));
        }
    }

    fn is_counted(&self) -> bool {
        self.shared.phase.load(Ordering::Relaxed) == COUNTED
    }
}

/// What callers did. Calls are counted in the measured time, and not cycles: callers who wait for the same commit claim
/// all at once and complete all at once, and a short window would count one kind only. Duplicates among cycles are left out.
#[derive(Default)]
struct Tally {
    claims_us: Vec<u32>,
    completes_counted: usize,
    /// Of all claims, also those before and after the measured time.
    answers: Answers,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.claims_us.extend(other.claims_us);
        self.completes_counted += other.completes_counted;
        self.answers.ran += other.answers.ran;
        self.answers.replayed += other.answers.replayed;
    }

    fn sample(&self, work: &str, took: Duration, whole: Duration, ran: Duration) -> Result<Sample> {
        let mut spans = Histogram::<u64>::new(3)?;
        for micros in &self.claims_us {
            spans.record(u64::from(*micros))?;
        }
        let calls = float((self.claims_us.len() + self.completes_counted) as u64);
        let (counted, done) = match work {
            REPLAYS => (calls, float(self.answers.replayed)),
            _ => (calls / 2.0, float(self.answers.ran)),
        };
        Ok(Sample::from([
            (Metric::PerSecond, counted / took.as_secs_f64()),
            (Metric::PerSecondWithDeferred, done / whole.as_secs_f64()),
            (Metric::P50Us, float(spans.value_at_quantile(0.5))),
            (Metric::P99Us, float(spans.value_at_quantile(0.99))),
            (Metric::CpuUs, ran.as_secs_f64() * 1e6 / done),
        ]))
    }
}

/// Makes all calls from so many tasks, each task one call after the other.
pub(crate) async fn each<C, W, F>(contestant: &Arc<C>, tasks: usize, calls: u64, work: W) -> Result<()>
where
    C: Contestant,
    W: Fn(Arc<C>, u64) -> F + Clone + Send + 'static,
    F: Future<Output = Result<()>> + Send,
{
    let mut running = JoinSet::new();
    for first in 0..tasks {
        let (contestant, work) = (Arc::clone(contestant), work.clone());
        running.spawn(async move {
            for number in (first as u64..calls).step_by(tasks) {
                work(Arc::clone(&contestant), number).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done.context("a task did not reach its end")??;
    }
    Ok(())
}

/// Waits until this process is idle, at most three seconds: deferred work must not disturb the next contestant.
pub(crate) fn until_quiet() {
    const LOOK_EVERY: Duration = Duration::from_millis(40);
    for _ in 0..75 {
        let ran = processor_time();
        sleep(LOOK_EVERY);
        if processor_time().saturating_sub(ran) < LOOK_EVERY / 10 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hardest_peer_decides_and_semel_is_none() {
        let mut rows = Rows::default();
        // Semel does 9 times as much as one peer and 4.1 times as much as the other, with 0.2 and 0.36 of their time.
        for (contestant, rate, cpu) in
            [("semel", 36.9, 18.0), ("semel, engine", 9.0, 99.0), ("slow", 4.1, 90.0), ("quick", 9.0, 50.0)]
        {
            for work in [CYCLES, REPLAYS] {
                let sample = Sample::from([(Metric::PerSecond, rate), (Metric::CpuUs, cpu)]);
                rows.add(Case::new(work, contestant).load(256), sample);
            }
        }
        let semel = Case::new(CYCLES, "semel").load(256);
        let four = at_least_best_peer(&rows, semel, 4.0);
        assert!(four.reached && four.wanted == "at least 4.0× quick" && four.found == "4.10×", "{four:?}");
        assert!(!at_least_best_peer(&rows, semel.work(REPLAYS), 5.0).reached);
        let cpu = cpu_at_most_best_peer(&rows, semel, 0.35);
        assert!(!cpu.reached && cpu.wanted == "at most 0.35× quick" && cpu.found == "0.36×", "{cpu:?}");
        assert!(cpu_at_most_best_peer(&rows, semel, 0.36).reached);
        for unmeasured in [semel.load(1), semel.setting("always")] {
            assert!(!at_least_best_peer(&rows, unmeasured, 4.0).reached, "{unmeasured}");
            assert!(!cpu_at_most_best_peer(&rows, unmeasured, 0.35).reached, "{unmeasured}");
        }
    }
}
