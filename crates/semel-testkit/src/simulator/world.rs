//! One seed, one world: built, run to its end, and judged.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use semel::clock::{Clock, Timestamp};
use semel::store::{MemoryStore, Store};
use semel::{Claim, Decision, Key, Lapse, Semel};
use tokio::time::Instant;

use super::flaw::{Flaw, flawed};
use super::judge::{Report, Testimony, judge};
use super::process::Process;
use super::witness::{Resource, Trace, Witness};
use crate::faulty::{Fault, FaultyStore};

/// Runs the world of one seed to its end, over the memory store, and judges what happened in it.
pub fn simulate(seed: u64, flaw: Flaw) -> std::io::Result<Report> {
    simulate_on(seed, flaw, |clock, _| Arc::new(MemoryStore::builder().clock(clock).build()))
}

/// Runs the world of one seed to its end, over any store, and judges what happened in it.
///
/// `open` is given the clock that the store must run on, and the seed, from which alone it may draw whatever it leaves to
/// chance. The store must answer on the thread that asks: a thread of its own would come at a moment of its own.
pub fn simulate_on(
    seed: u64,
    flaw: Flaw,
    open: impl FnOnce(StoreClock, u64) -> Arc<dyn Store>,
) -> std::io::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(live(seed, flaw, open)))
}

async fn live(seed: u64, flaw: Flaw, open: impl FnOnce(StoreClock, u64) -> Arc<dyn Store>) -> Report {
    let dice = Dice::new(seed);
    let plan = Arc::new(Plan::draw(&dice));
    let clock = StoreClock::new(plan.store_clock_per_mille);
    let witness = Witness::new(open(clock, seed));
    let store = flawed(Arc::new(witness.clone()), flaw);
    let (trace, testimony, resource) = (Trace::start(), Testimony::default(), Resource::new(flaw));

    let mut lives = Vec::new();
    for number in 1..=plan.processes {
        let dice = dice.split();
        let name = format!("process {number}");
        let process = Process {
            semel: engine(&name, &plan, &dice, Arc::clone(&store)),
            name,
            plan: Arc::clone(&plan),
            dice,
            resource: resource.clone(),
            trace: trace.clone(),
            testimony: testimony.clone(),
        };
        lives.push(tokio::spawn(process.live()));
    }
    let sweeper = sweeper(&store, plan.retention);
    let mut broken = Vec::new();
    for life in lives {
        if life.await.is_err() {
            broken.push("a process panicked".to_owned());
        }
    }
    broken.extend(stuck_keys(&plan, &store).await);
    sweeper.abort();

    let told = testimony.told();
    let written = witness.written();
    broken.extend(judge(&written, &told, &resource.accepted()));
    let (trace_hash, events) = trace.digest();
    Report {
        seed,
        trace_hash,
        events,
        runs: told.runs(),
        reruns: written.iter().filter(|record| record.attempt > 1 && record.outcome().is_none()).count()
            as u64,
        replays: told.replays(),
        crashes: told.crashes,
        lost: told.lost,
        fenced_off: resource.refused(),
        violations: broken,
    }
}

fn engine(name: &str, plan: &Arc<Plan>, dice: &Dice, store: Arc<dyn Store>) -> Semel {
    let (faults, of, mint) = (dice.split(), Arc::clone(plan), dice.split());
    let network = FaultyStore::new(store, move |_| of.fault(&faults));
    let builder = Semel::builder(network)
        .owner(name)
        .lease(plan.lease)
        .retention(plan.retention)
        .lapse(plan.lapse)
        // The world has a sweeper of its own: the engine's draws its jitter from no seed.
        .no_sweep()
        .permit_ids(move || mint.permit_id());
    let builder = match plan.attempts_max {
        Some(most) => builder.attempts_max(most),
        None => builder,
    };
    builder.build().unwrap_or_else(|_| Semel::new(MemoryStore::new()))
}

fn sweeper(store: &Arc<dyn Store>, retention: Duration) -> tokio::task::JoinHandle<()> {
    let store = Arc::clone(store);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(retention / 2).await;
            drop(store.sweep(8).await);
        }
    })
}

/// When everybody is gone and every lease has lapsed, no key may be left that nobody can claim.
async fn stuck_keys(plan: &Plan, store: &Arc<dyn Store>) -> Vec<String> {
    // Also what was doubled or is still on its way has landed by then, and the slowest clock has moved past every lease.
    tokio::time::sleep(plan.lease.saturating_mul(20)).await;
    let semel = match Semel::builder_shared(Arc::clone(store)).permit_ids(|| 1).no_sweep().build() {
        Ok(semel) => semel,
        Err(error) => return vec![error.to_string()],
    };
    let mut stuck = Vec::new();
    for key in &plan.keys {
        match semel.claim(Claim::new(key)).await {
            Ok(Decision::Run(_) | Decision::Replay(_) | Decision::Held(_)) => {}
            other => stuck.push(format!("{}: stuck at the end: {other:?}", key.id().short())),
        }
    }
    stuck
}

/// The seed's choices, drawn one after the other.
#[derive(Clone)]
pub(super) struct Dice(Arc<Mutex<StdRng>>);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// Dice of their own for one process, so that what it draws does not depend on who else draws.
    pub(super) fn split(&self) -> Self {
        Self::new(self.number(0, u64::MAX))
    }

    pub(super) fn number(&self, least: u64, most: u64) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).random_range(least..=most)
    }

    pub(super) fn permit_id(&self) -> u128 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).random()
    }

    /// Happens in so many of a hundred cases.
    pub(super) fn happens(&self, percent: u64) -> bool {
        self.number(1, 100) <= percent
    }

    pub(super) fn span(&self, least: Duration, most: Duration) -> Duration {
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.number(micros(least), micros(most)))
    }

    pub(super) fn pick<'a, T>(&self, of: &'a [T]) -> Option<&'a T> {
        let last = u64::try_from(of.len()).unwrap_or(u64::MAX).checked_sub(1)?;
        of.get(usize::try_from(self.number(0, last)).unwrap_or(0))
    }
}

/// What a seed decides for the whole world.
pub(super) struct Plan {
    pub(super) keys: Vec<Key>,
    pub(super) processes: u64,
    pub(super) jobs: u64,
    pub(super) lease: Duration,
    pub(super) retention: Duration,
    pub(super) lapse: Lapse,
    pub(super) attempts_max: Option<u32>,
    pub(super) percent: Percent,
    /// The store's clock runs this many microseconds for a thousand of the callers'.
    pub(super) store_clock_per_mille: u64,
}

/// How often things go wrong, in so many of a hundred cases.
#[derive(Clone, Copy)]
pub(super) struct Percent {
    pub(super) fault: u64,
    pub(super) crash: u64,
    pub(super) pause: u64,
    pub(super) failure: u64,
    pub(super) mismatch: u64,
    pub(super) hang_up: u64,
}

impl Plan {
    pub(super) fn draw(dice: &Dice) -> Self {
        let seconds = Duration::from_secs;
        let names = ["order-1", "order-2", "order-3"];
        let keys = names.iter().filter_map(|name| Key::scoped(["sim"], "charge", name).ok());
        let count = usize::try_from(dice.number(1, 3)).unwrap_or(1);
        Self {
            keys: keys.take(count).collect(),
            processes: dice.number(2, 5),
            jobs: dice.number(3, 12),
            lease: dice.span(seconds(1), seconds(8)),
            retention: dice.span(seconds(5), seconds(120)),
            lapse: if dice.happens(70) { Lapse::Rerun } else { Lapse::Hold },
            attempts_max: dice.happens(30).then_some(3),
            percent: Percent {
                fault: dice.number(0, 40),
                crash: dice.number(0, 25),
                pause: dice.number(0, 30),
                failure: dice.number(0, 20),
                mismatch: dice.number(0, 15),
                hang_up: dice.number(0, 15),
            },
            store_clock_per_mille: *dice.pick(&[1_000, 1_000, 500, 900, 1_100, 2_000]).unwrap_or(&1_000),
        }
    }

    pub(super) fn fault(&self, dice: &Dice) -> Fault {
        let most = self.lease;
        if !dice.happens(self.percent.fault) {
            return Fault::Delay(dice.span(Duration::from_micros(100), Duration::from_millis(20)));
        }
        match dice.number(0, 5) {
            0 => Fault::Refuse,
            1 => Fault::LoseAsk(dice.span(Duration::ZERO, most)),
            2 | 3 => Fault::LoseReply(dice.span(Duration::ZERO, most)),
            4 => Fault::Double(dice.span(Duration::ZERO, most.saturating_mul(3))),
            _ => Fault::Delay(dice.span(Duration::ZERO, most)),
        }
    }
}

/// The store's clock in a simulated world: not the callers', and not as fast. Copies show one time.
#[derive(Clone, Copy, Debug)]
pub struct StoreClock {
    started_at: Instant,
    per_mille: u64,
}

impl StoreClock {
    pub(super) fn new(per_mille: u64) -> Self {
        Self { started_at: Instant::now(), per_mille }
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        let elapsed = u64::try_from(self.started_at.elapsed().as_micros()).unwrap_or(u64::MAX);
        Timestamp::from_micros(1_000_000_000_000 + elapsed.saturating_mul(self.per_mille) / 1_000)
    }
}
