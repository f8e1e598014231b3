//! The two phases, cycles and replays, and the callers that run them.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use semel::{Claim, Decision, Fingerprint, Key, Outcome, Semel};
use tokio::task::JoinSet;

use super::latency::Latency;
use super::plan::Plan;
use crate::terminal::stopwatch::Stopwatch;

/// How many bytes each run produces.
pub(super) const OUTCOME_BYTES: usize = 150;
/// How many calls a caller makes before it lets others have the thread: the memory store never waits, so a
/// caller that did not step back would be the only one.
const TURN: usize = 32;

/// What was counted.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) runs: u64,
    pub(super) cycles_took: Duration,
    pub(super) replays: u64,
    pub(super) replays_took: Duration,
    pub(super) claim: Latency,
    pub(super) complete: Latency,
    pub(super) replay: Latency,
}

/// Claims and completes every key, then replays them until the time is up.
pub(super) async fn measure(semel: &Semel, plan: &Plan) -> Result<Measured> {
    let (mut claim, mut complete, mut replay) = (Latency::new()?, Latency::new()?, Latency::new()?);
    let (mut runs, mut replays) = (0_u64, 0_u64);

    let bar = progress("cycles", plan.keys.get() as u64);
    let callers = callers(semel, plan, &bar);
    let watch = Stopwatch::start();
    for cycles in together(callers.into_iter().map(Caller::cycles)).await? {
        runs = runs.saturating_add(cycles.runs);
        claim.add_all(&cycles.claim)?;
        complete.add_all(&cycles.complete)?;
    }
    let cycles_took = watch.elapsed();
    bar.finish_and_clear();

    let bar = progress("replays", u64::try_from(plan.replays_for.as_millis())?);
    let callers = self::callers(semel, plan, &bar);
    let watch = Stopwatch::start();
    let until = plan.replays_for;
    for latency in together(callers.into_iter().map(|caller| caller.replays(watch, until))).await? {
        replays = replays.saturating_add(latency.count());
        replay.add_all(&latency)?;
    }
    let replays_took = watch.elapsed();
    bar.finish_and_clear();
    Ok(Measured { runs, cycles_took, replays, replays_took, claim, complete, replay })
}

/// One task that calls, one call after the other.
struct Caller {
    semel: Semel,
    number: usize,
    of: usize,
    keys: usize,
    bar: ProgressBar,
}

/// What one caller did in the first phase.
struct Cycles {
    runs: u64,
    claim: Latency,
    complete: Latency,
}

impl Caller {
    async fn cycles(self) -> Result<Cycles> {
        let (mut runs, mut claim, mut complete) = (0_u64, Latency::new()?, Latency::new()?);
        for (turn, number) in (self.number..self.keys).step_by(self.of).enumerate() {
            let ask = ask(number)?;
            let watch = Stopwatch::start();
            let decision = self.semel.claim(ask).await?;
            claim.add(watch.elapsed())?;
            let Decision::Run(permit) = decision else {
                bail!("a key that nobody had claimed was not to be run: {}", decision.word());
            };
            runs = runs.saturating_add(1);
            let outcome = Outcome::success([7_u8; OUTCOME_BYTES]);
            let watch = Stopwatch::start();
            permit.complete(outcome).await?;
            complete.add(watch.elapsed())?;
            if turn.is_multiple_of(TURN) {
                self.bar.set_position(turn.saturating_mul(self.of) as u64);
                tokio::task::yield_now().await;
            }
        }
        Ok(Cycles { runs, claim, complete })
    }

    async fn replays(self, started: Stopwatch, until: Duration) -> Result<Latency> {
        let mut replay = Latency::new()?;
        for (turn, number) in (self.number..).step_by(self.of).enumerate() {
            let ask = ask(scattered(number, self.keys))?;
            let watch = Stopwatch::start();
            let decision = self.semel.claim(ask).await?;
            replay.add(watch.elapsed())?;
            let Decision::Replay(_) = decision else {
                bail!("a key that is done was not replayed: {}", decision.word());
            };
            if turn.is_multiple_of(TURN) {
                let elapsed = started.elapsed();
                if elapsed >= until {
                    break;
                }
                self.bar.set_position(u64::try_from(elapsed.as_millis())?);
                tokio::task::yield_now().await;
            }
        }
        Ok(replay)
    }
}

fn callers(semel: &Semel, plan: &Plan, bar: &ProgressBar) -> Vec<Caller> {
    let of = plan.callers.get();
    let caller =
        |number| Caller { semel: semel.clone(), number, of, keys: plan.keys.get(), bar: bar.clone() };
    (0..of).map(caller).collect()
}

/// Runs all of them as tasks of their own; the first that fails is the answer.
async fn together<T: Send + 'static>(
    work: impl Iterator<Item = impl Future<Output = Result<T>> + Send + 'static>,
) -> Result<Vec<T>> {
    let mut tasks: JoinSet<_> = work.collect();
    let mut done = Vec::new();
    while let Some(one) = tasks.join_next().await {
        done.push(one.context("a caller did not reach its end")??);
    }
    Ok(done)
}

/// What a caller asks for the key with this number, made as an application would make it.
fn ask(number: usize) -> Result<Claim> {
    let key = Key::scoped(["acme"], "charge", &format!("order-{number:08}"))?;
    let mut digest = [7_u8; 32];
    digest.iter_mut().zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
    Ok(Claim::new(&key).fingerprint(Fingerprint::from_bytes(digest)))
}

/// The same random order for everybody: neighbours in time are no neighbours among the keys.
fn scattered(number: usize, keys: usize) -> usize {
    let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    usize::try_from(mixed).unwrap_or(number).checked_rem(keys).unwrap_or(0)
}

/// A bar on stderr, if that is a terminal.
fn progress(what: &'static str, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length).with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{msg:8} {wide_bar} {percent:>3}%") {
        bar.set_style(style);
    }
    bar
}
