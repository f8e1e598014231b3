//! Many callers for a while: how much they get done, and how long they wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::contestants::{Claimed, Contestant};
use crate::inputs::{NAMES_MAX, scattered};
use crate::stopwatch::{Stopwatch, processor_time};

/// One key in so many is claimed once more, by a duplicate of an older one.
const DUPLICATE_EVERY: u64 = 10;
const WARMING_UP: u8 = 0;
const COUNTED: u8 = 1;
const OVER: u8 = 2;

/// How many callers, and for how long.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) callers: usize,
    pub(super) span: Duration,
}

/// What a window found out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Claim and complete of one key, per second.
    pub(super) cycles: f64,
    pub(super) claim_p50_us: f64,
    pub(super) claim_p99_us: f64,
    /// Processor time of a cycle, what the contestant left for later included.
    pub(super) cpu_us: f64,
}

/// A contestant that is open and loaded, whoever it is.
pub(super) trait Entrant {
    /// Lets the callers work on new keys.
    fn window(&self, runtime: &Runtime, plan: Plan) -> Result<Window>;

    /// Claims a key that is done, and answers how many bytes its outcome has.
    fn replay(&self, runtime: &Runtime, number: u64) -> Result<usize>;
}

/// A contestant with the keys below `keys` done.
pub(super) struct Loaded<C> {
    contestant: Arc<C>,
    keys: u64,
    /// The next key that nobody has claimed.
    next: Arc<AtomicU64>,
}

impl<C: Contestant> Loaded<C> {
    pub(super) fn new(contestant: C, keys: u64) -> Self {
        Self { contestant: Arc::new(contestant), keys, next: Arc::new(AtomicU64::new(keys)) }
    }

    fn caller(&self, phase: &Arc<AtomicU8>) -> Caller<C> {
        Caller {
            contestant: Arc::clone(&self.contestant),
            next: Arc::clone(&self.next),
            phase: Arc::clone(phase),
            keys: self.keys,
            tally: Tally::default(),
        }
    }
}

impl<C: Contestant> Entrant for Loaded<C> {
    fn window(&self, runtime: &Runtime, plan: Plan) -> Result<Window> {
        let phase = Arc::new(AtomicU8::new(WARMING_UP));
        let ran = processor_time();
        let mut callers = JoinSet::new();
        for _ in 0..plan.callers {
            callers.spawn_on(self.caller(&phase).work(), runtime.handle());
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
        until_quiet();
        tally.window(took, processor_time().saturating_sub(ran))
    }

    fn replay(&self, runtime: &Runtime, number: u64) -> Result<usize> {
        runtime.block_on(self.contestant.replay(number))
    }
}

struct Caller<C> {
    contestant: Arc<C>,
    next: Arc<AtomicU64>,
    phase: Arc<AtomicU8>,
    keys: u64,
    tally: Tally,
}

impl<C: Contestant> Caller<C> {
    async fn work(mut self) -> Result<Tally> {
        while self.phase.load(Ordering::Relaxed) != OVER {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            ensure!(
                number < NAMES_MAX,
                "the names of keys are used up: ask for fewer rounds or shorter windows"
            );
            let watch = Stopwatch::start();
            let Claimed::Run(run) = self.contestant.claim(number).await? else {
                bail!("key {number} was not to be run");
            };
            let waited = watch.elapsed();
            if self.counts() {
                self.tally.claims_us.push(u32::try_from(waited.as_micros()).unwrap_or(u32::MAX));
            }
            self.contestant.complete(run).await?;
            self.counts();
            if number.is_multiple_of(DUPLICATE_EVERY) {
                self.contestant.replay(scattered(number, self.keys)).await?;
            }
        }
        Ok(self.tally)
    }

    /// Counts a call, and says whether it fell into the time that is measured. Calls and not cycles: callers who wait
    /// for the same commit claim all at once and complete all at once, and a short window would count one kind only.
    fn counts(&mut self) -> bool {
        let is_counted = self.phase.load(Ordering::Relaxed) == COUNTED;
        self.tally.calls += 1;
        self.tally.calls_counted += u64::from(is_counted);
        is_counted
    }
}

/// What callers did; duplicates are not in it.
#[derive(Default)]
struct Tally {
    calls: u64,
    calls_counted: u64,
    claims_us: Vec<u32>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.calls_counted += other.calls_counted;
        self.claims_us.extend(other.claims_us);
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate is read to three digits")]
    fn window(&self, took: Duration, ran: Duration) -> Result<Window> {
        let mut spans = Histogram::<u64>::new(3)?;
        for micros in &self.claims_us {
            spans.record(u64::from(*micros))?;
        }
        Ok(Window {
            cycles: self.calls_counted as f64 / 2.0 / took.as_secs_f64(),
            claim_p50_us: spans.value_at_quantile(0.5) as f64,
            claim_p99_us: spans.value_at_quantile(0.99) as f64,
            cpu_us: ran.as_secs_f64() * 1e6 / (self.calls as f64 / 2.0),
        })
    }
}

/// Waits until this process does next to nothing, or for three seconds: what one contestant left for later must not
/// take the processor from the next.
pub(super) fn until_quiet() {
    const LOOK_EVERY: Duration = Duration::from_millis(40);
    for _ in 0..75 {
        let ran = processor_time();
        sleep(LOOK_EVERY);
        if processor_time().saturating_sub(ran) < LOOK_EVERY / 10 {
            return;
        }
    }
}
