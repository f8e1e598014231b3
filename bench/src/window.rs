//! Many callers for a while: how much they get done, and how long they wait for it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::contestants::{Claimed, Contestant};
use crate::inputs::{BODY_BYTES, NAMES_MAX, scattered};
use crate::stopwatch::{Stopwatch, processor_time};

/// One key in so many is claimed once more, by a duplicate of an older one.
const DUPLICATE_EVERY: u64 = 10;
const WARMING_UP: u8 = 0;
const COUNTED: u8 = 1;
const OVER: u8 = 2;

/// How many callers, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) callers: usize,
    pub(crate) span: Duration,
}

/// What a window found out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Cycles (claim and complete of one key) or replays, per second.
    pub(crate) rate: f64,
    /// The same over all of the time, what the contestant left for later included.
    pub(crate) sustained: f64,
    pub(crate) claim_p50_us: f64,
    pub(crate) claim_p99_us: f64,
    /// Processor time of a cycle or replay in this process, what the contestant left for later included.
    pub(crate) cpu_us: f64,
}

/// What callers do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Cycles,
    Replays,
}

/// What callers were told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// To run a key that nobody had claimed; all of these were completed.
    pub(crate) ran: u64,
    /// The outcome of a key that was done.
    pub(crate) replayed: u64,
}

/// A contestant that is open and loaded, whoever it is.
pub(crate) trait Entrant {
    /// Lets the callers work on new keys.
    fn window(&self, runtime: &Runtime, plan: Plan) -> Result<Window>;

    /// Lets the callers claim keys that are done.
    fn replays(&self, runtime: &Runtime, plan: Plan) -> Result<Window>;

    /// What callers were told, in all windows.
    fn told(&self) -> Told;

    /// Claims a key that is done, and answers how many bytes its outcome has.
    fn replay(&self, runtime: &Runtime, number: u64) -> Result<usize>;
}

/// A contestant with the keys below `keys` done.
pub(crate) struct Loaded<C> {
    contestant: Arc<C>,
    keys: u64,
    /// The next key that nobody has claimed.
    next: Arc<AtomicU64>,
    /// How many replays were asked for in windows of replays.
    replays: Arc<AtomicU64>,
    told: Mutex<Told>,
}

impl<C: Contestant> Loaded<C> {
    pub(crate) fn new(contestant: C, keys: u64) -> Self {
        let (next, replays) = (Arc::new(AtomicU64::new(keys)), Arc::default());
        Self { contestant: Arc::new(contestant), keys, next, replays, told: Mutex::default() }
    }

    fn caller(&self, work: Work, phase: &Arc<AtomicU8>) -> Caller<C> {
        Caller {
            work,
            contestant: Arc::clone(&self.contestant),
            next: Arc::clone(&self.next),
            replays: Arc::clone(&self.replays),
            phase: Arc::clone(phase),
            keys: self.keys,
            tally: Tally::default(),
        }
    }

    fn work(&self, work: Work, runtime: &Runtime, plan: Plan) -> Result<Window> {
        let phase = Arc::new(AtomicU8::new(WARMING_UP));
        let ran = processor_time();
        let whole = Stopwatch::start();
        let mut callers = JoinSet::new();
        for _ in 0..plan.callers {
            callers.spawn_on(self.caller(work, &phase).work(), runtime.handle());
        }
        sleep(plan.span / 3);
        phase.store(COUNTED, Ordering::SeqCst);
        let watch = Stopwatch::start();
        sleep(plan.span);
        phase.store(OVER, Ordering::SeqCst);
        let took = watch.elapsed();
        let mut tally = Tally::default();
        runtime.block_on(async {
            while let Some(done) = callers.join_next().await {
                tally.add(done.context("a caller did not reach its end")??);
            }
            anyhow::Ok(())
        })?;
        runtime.block_on(self.contestant.catch_up())?;
        let whole = whole.elapsed();
        until_quiet();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.ran += tally.told.ran;
        told.replayed += tally.told.replayed;
        tally.window(work, took, whole, processor_time().saturating_sub(ran))
    }
}

impl<C: Contestant> Entrant for Loaded<C> {
    fn window(&self, runtime: &Runtime, plan: Plan) -> Result<Window> {
        self.work(Work::Cycles, runtime, plan)
    }

    fn replays(&self, runtime: &Runtime, plan: Plan) -> Result<Window> {
        self.work(Work::Replays, runtime, plan)
    }

    fn told(&self) -> Told {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replay(&self, runtime: &Runtime, number: u64) -> Result<usize> {
        runtime.block_on(self.contestant.replay(number))
    }
}

struct Caller<C> {
    work: Work,
    contestant: Arc<C>,
    next: Arc<AtomicU64>,
    replays: Arc<AtomicU64>,
    phase: Arc<AtomicU8>,
    keys: u64,
    tally: Tally,
}

impl<C: Contestant> Caller<C> {
    async fn work(mut self) -> Result<Tally> {
        while self.phase.load(Ordering::Relaxed) != OVER {
            match self.work {
                Work::Cycles => self.cycle().await?,
                Work::Replays => {
                    let turn = self.replays.fetch_add(1, Ordering::Relaxed);
                    let watch = Stopwatch::start();
                    self.replay(scattered(turn, self.keys)).await?;
                    self.claimed(watch.elapsed());
                }
            }
        }
        Ok(self.tally)
    }

    async fn cycle(&mut self) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        ensure!(number < NAMES_MAX, "the names of keys are used up: ask for fewer rounds or shorter windows");
        let watch = Stopwatch::start();
        let Claimed::Run(run) = self.contestant.claim(number).await? else {
            bail!("key {number} was not to be run");
        };
        self.claimed(watch.elapsed());
        self.contestant.complete(run).await?;
        if self.is_counted() {
            self.tally.completes_counted += 1;
        }
        self.tally.told.ran += 1;
        if number.is_multiple_of(DUPLICATE_EVERY) {
            self.replay(scattered(number, self.keys)).await?;
        }
        Ok(())
    }

    /// Claims a key that is done; whoever is told anything but its whole outcome fails.
    async fn replay(&mut self, number: u64) -> Result<()> {
        let bytes = self.contestant.replay(number).await?;
        ensure!(bytes >= BODY_BYTES, "key {number} was replayed with {bytes} bytes");
        self.tally.told.replayed += 1;
        Ok(())
    }

    /// Keeps how long a claim waited, if it fell into the time that is measured.
    fn claimed(&mut self, waited: Duration) {
        if self.is_counted() {
            self.tally.claims_us.push(u32::try_from(waited.as_micros()).unwrap_or(u32::MAX));
        }
    }

    fn is_counted(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == COUNTED
    }
}

/// What callers did. Calls in the measured time are counted and not cycles: callers who wait for the same commit claim all
/// at once and complete all at once, and a short window would count one kind only. Duplicates among cycles are not in it.
#[derive(Default)]
struct Tally {
    /// One for each claim in the measured time.
    claims_us: Vec<u32>,
    completes_counted: usize,
    /// All that was told, also before and after.
    told: Told,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.claims_us.extend(other.claims_us);
        self.completes_counted += other.completes_counted;
        self.told.ran += other.told.ran;
        self.told.replayed += other.told.replayed;
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate is read to three digits")]
    fn window(&self, work: Work, took: Duration, whole: Duration, ran: Duration) -> Result<Window> {
        let mut spans = Histogram::<u64>::new(3)?;
        for micros in &self.claims_us {
            spans.record(u64::from(*micros))?;
        }
        let calls = (self.claims_us.len() + self.completes_counted) as f64;
        let (counted, done) = match work {
            Work::Cycles => (calls / 2.0, self.told.ran as f64),
            Work::Replays => (calls, self.told.replayed as f64),
        };
        Ok(Window {
            rate: counted / took.as_secs_f64(),
            sustained: done / whole.as_secs_f64(),
            claim_p50_us: spans.value_at_quantile(0.5) as f64,
            claim_p99_us: spans.value_at_quantile(0.99) as f64,
            cpu_us: ran.as_secs_f64() * 1e6 / done,
        })
    }
}

/// Waits until this process does next to nothing, or for three seconds: what one contestant left for later must not
/// take the processor from the next.
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
