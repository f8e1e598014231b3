//! One seed, one world: built, run to its end, and judged.

use std::sync::Arc;
use std::time::Duration;

use semel::store::{MemoryStore, Store};
use semel::{Claim, Decision, Semel};

use super::flaw::{Flaw, flawed};
use super::judge::{Testimony, judge};
use super::plan::{Dice, Plan, StoreClock};
use super::process::Process;
use super::report::Report;
use super::witness::Resource;
use super::witness::Trace;
use super::witness::Witness;
use crate::faulty::FaultyStore;

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
    let semel = match Semel::builder_shared(Arc::clone(store)).permit_ids(|| 1).build() {
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
