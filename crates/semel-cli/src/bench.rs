//! `semel bench`: what a store can do on this machine.
//!
//! Two phases, cycles and replays, by callers that ask one call after the other; then the numbers, as a table or as JSON.

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;
use indicatif::ProgressBar;
use semel::{Claim, Decision, Fingerprint, Key, Outcome, Semel};
use semel_ops::store_url::Address;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::args::{at_least_one, at_most, refused};
use crate::store_arg::StoreArg;
use crate::terminal::{Stopwatch, bar, grouped, out};

/// The most keys that one measurement may ask for: beyond it, memory is what is measured.
const KEYS_MAX: usize = 50_000_000;
/// How many bytes each run produces.
const OUTCOME_BYTES: usize = 150;
/// How progress looks.
const BAR: &str = "{msg:8} {wide_bar} {percent:>3}%";
/// How many calls a caller makes before it lets others have the thread: the memory store never waits, so a
/// caller that did not step back would be the only one.
const TURN: usize = 32;

#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// How many keys to claim and complete
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    keys: usize,
    /// How long to replay them
    #[arg(long, value_name = "S", default_value_t = 3.0)]
    seconds: f64,
    /// How many callers ask at the same time
    #[arg(long, value_name = "N", default_value_t = 16)]
    callers: usize,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is to be measured, within its bounds.
pub(crate) struct Plan {
    pub(crate) keys: NonZeroUsize,
    pub(crate) replays_for: Duration,
    pub(crate) callers: NonZeroUsize,
}

impl BenchArgs {
    /// Measures, and prints the report.
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let (address, plan) = (store.address_to_fill()?, self.plan()?);
        refuse_used_folder(&address)?;
        let store = address.open_with_room(plan.keys.get()).await?;
        let semel = Semel::builder_shared(store.store()).build()?;
        refuse_used_keys(&semel, &address).await?;
        let measured = measure(&semel, &plan).await?;
        semel.close().await?;
        if self.json {
            return out::line(&json(&address, &plan, &measured)?);
        }
        out::print(&table(&address, &plan, &measured))
    }

    pub(crate) fn plan(&self) -> Result<Plan, clap::Error> {
        let keys = at_most("--keys", self.keys, KEYS_MAX)?;
        let replays_for = Duration::try_from_secs_f64(self.seconds)
            .ok()
            .filter(|span| *span <= Duration::from_hours(1))
            .ok_or_else(|| refused("--seconds takes a number from 0 to 3600, such as 0.5"))?;
        Ok(Plan { keys, replays_for, callers: at_least_one("--callers", self.callers)? })
    }
}

/// A folder that holds anything is not opened: the measurement would be of what is in it, too, and would fill it.
fn refuse_used_folder(address: &Address) -> Result<()> {
    let Address::File(folder) = address else { return Ok(()) };
    let Some(first) = std::fs::read_dir(folder).ok().and_then(|mut names| names.next()) else {
        return Ok(());
    };
    let name = first.with_context(|| format!("{} cannot be read", folder.display()))?.file_name();
    bail!(
        "{}: holds {}, and a measurement needs a store of its own; nothing was touched: give an empty or missing folder",
        folder.display(),
        name.display()
    )
}

/// The keys of an earlier measurement would be replayed instead of run.
async fn refuse_used_keys(semel: &Semel, address: &Address) -> Result<()> {
    if semel.get(&key(0)?).await?.is_none() {
        return Ok(());
    }
    bail!(
        "{address}: holds the keys of an earlier measurement; nothing was touched: give a store that is empty, or wait \
         until their retention is over and sweep"
    )
}

/// What was counted.
#[derive(Debug)]
struct Measured {
    cycles_took: Duration,
    replays_took: Duration,
    claim: Latency,
    complete: Latency,
    replay: Latency,
}

/// Claims and completes every key, then replays them until the time is up.
async fn measure(semel: &Semel, plan: &Plan) -> Result<Measured> {
    let (mut claim, mut complete, mut replay) = (Latency::new()?, Latency::new()?, Latency::new()?);
    let bar = bar::plain(plan.keys.get() as u64, "cycles", BAR);
    let callers = callers(semel, plan, &bar);
    let watch = Stopwatch::start();
    for (claims, completes) in together(callers.into_iter().map(Caller::cycles)).await? {
        claim.add_all(&claims)?;
        complete.add_all(&completes)?;
    }
    let cycles_took = watch.elapsed();
    bar.finish_and_clear();

    let bar = bar::plain(u64::try_from(plan.replays_for.as_millis())?, "replays", BAR);
    let callers = self::callers(semel, plan, &bar);
    let watch = Stopwatch::start();
    let until = plan.replays_for;
    for latency in together(callers.into_iter().map(|caller| caller.replays(watch, until))).await? {
        replay.add_all(&latency)?;
    }
    let replays_took = watch.elapsed();
    bar.finish_and_clear();
    Ok(Measured { cycles_took, replays_took, claim, complete, replay })
}

/// One task that calls, one call after the other.
struct Caller {
    semel: Semel,
    number: usize,
    of: usize,
    keys: usize,
    bar: ProgressBar,
}

impl Caller {
    /// How long its claims took, each of which was to be run, and its completes.
    async fn cycles(self) -> Result<(Latency, Latency)> {
        let (mut claim, mut complete) = (Latency::new()?, Latency::new()?);
        for (turn, number) in (self.number..self.keys).step_by(self.of).enumerate() {
            let ask = ask(number)?;
            let watch = Stopwatch::start();
            let decision = self.semel.claim(ask).await?;
            claim.add(watch.elapsed())?;
            let Decision::Run(permit) = decision else {
                bail!("a key that nobody had claimed was not to be run: {}", decision.as_str());
            };
            let outcome = Outcome::success(vec![7_u8; OUTCOME_BYTES]);
            let watch = Stopwatch::start();
            permit.complete(outcome).await?;
            complete.add(watch.elapsed())?;
            if turn.is_multiple_of(TURN) {
                self.bar.set_position(turn.saturating_mul(self.of) as u64);
                tokio::task::yield_now().await;
            }
        }
        Ok((claim, complete))
    }

    async fn replays(self, started: Stopwatch, until: Duration) -> Result<Latency> {
        let mut replay = Latency::new()?;
        for (turn, number) in (self.number..).step_by(self.of).enumerate() {
            let ask = ask(scattered(number, self.keys))?;
            let watch = Stopwatch::start();
            let decision = self.semel.claim(ask).await?;
            replay.add(watch.elapsed())?;
            let Decision::Replay(_) = decision else {
                bail!("a key that is done was not replayed: {}", decision.as_str());
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
    let mut digest = [7_u8; 32];
    digest.iter_mut().zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
    Ok(Claim::new(&key(number)?).fingerprint(Fingerprint::from_bytes(digest)))
}

fn key(number: usize) -> Result<Key> {
    Ok(Key::scoped(["acme"], "charge", &format!("order-{number:08}"))?)
}

/// The same random order for everybody: neighbours in time are no neighbours among the keys.
fn scattered(number: usize, keys: usize) -> usize {
    let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    usize::try_from(mixed).unwrap_or(number).checked_rem(keys).unwrap_or(0)
}

/// The spans of many calls, in nanoseconds and to three digits.
#[derive(Clone, Debug)]
struct Latency(Histogram<u64>);

impl Latency {
    fn new() -> Result<Self> {
        Histogram::new(3).map(Self).context("no histogram of three digits")
    }

    /// Adds one span; the histogram grows with the longest.
    fn add(&mut self, span: Duration) -> Result<()> {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.0.record(nanos).context("a span too long to be counted")
    }

    fn add_all(&mut self, other: &Self) -> Result<()> {
        self.0.add(&other.0).context("histograms of one kind add up")
    }

    fn count(&self) -> u64 {
        self.0.len()
    }

    /// The span that this share of the calls stayed below, from 0 to 1.
    fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(share))
    }

    fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }
}

/// One JSON object; its members only ever grow in number.
#[derive(Debug, Serialize)]
struct Json {
    store: String,
    keys: usize,
    callers: usize,
    outcome_bytes: usize,
    runs: u64,
    replays: u64,
    cycles_per_second: f64,
    replays_per_second: f64,
    latency_us: Latencies,
}

#[derive(Debug, Serialize)]
struct Latencies {
    claim: Spans,
    complete: Spans,
    replay: Spans,
}

#[derive(Debug, Serialize)]
struct Spans {
    p50: f64,
    p99: f64,
    max: f64,
}

impl From<&Latency> for Spans {
    fn from(latency: &Latency) -> Self {
        let micros = |span: Duration| span.as_secs_f64() * 1e6;
        Self {
            p50: micros(latency.quantile(0.5)),
            p99: micros(latency.quantile(0.99)),
            max: micros(latency.max()),
        }
    }
}

/// For scripts.
fn json(store: &Address, plan: &Plan, measured: &Measured) -> Result<String> {
    let json = Json {
        store: store.to_string(),
        keys: plan.keys.get(),
        callers: plan.callers.get(),
        outcome_bytes: OUTCOME_BYTES,
        runs: measured.claim.count(),
        replays: measured.replay.count(),
        cycles_per_second: per_second(measured.claim.count(), measured.cycles_took),
        replays_per_second: per_second(measured.replay.count(), measured.replays_took),
        latency_us: Latencies {
            claim: (&measured.claim).into(),
            complete: (&measured.complete).into(),
            replay: (&measured.replay).into(),
        },
    };
    serde_json::to_string_pretty(&json).context("the report cannot be written as JSON")
}

/// For people.
fn table(store: &Address, plan: &Plan, measured: &Measured) -> String {
    let cycles = per_second(measured.claim.count(), measured.cycles_took);
    let replays = per_second(measured.replay.count(), measured.replays_took);
    let mut text = format!(
        "{}  {} keys, {} callers, outcomes of {OUTCOME_BYTES} bytes\n\n{:<10}{:>14}{:>12}{:>12}{:>12}\n",
        store,
        grouped(plan.keys.get() as u64),
        plan.callers,
        "",
        "per second",
        "p50 µs",
        "p99 µs",
        "max µs"
    );
    let mut line = |name: &str, rate: String, latency: Option<&Latency>| {
        let spans = latency.map(Spans::from).map_or_else(String::new, |spans| {
            format!("{:>12.1}{:>12.1}{:>12.1}", spans.p50, spans.p99, spans.max)
        });
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<10}{rate:>14}{spans}");
    };
    line("cycle", rounded(cycles), None);
    line("  claim", String::new(), Some(&measured.claim));
    line("  complete", String::new(), Some(&measured.complete));
    line("replay", rounded(replays), Some(&measured.replay));
    let _ = writeln!(
        text,
        "\nEvery key ran once ({} runs); claimed again, every key was replayed ({} replays).",
        grouped(measured.claim.count()),
        grouped(measured.replay.count())
    );
    text
}

#[expect(clippy::cast_precision_loss, reason = "a rate is read to three digits")]
fn per_second(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64().max(1e-9)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is positive, and far below u64::MAX"
)]
fn rounded(rate: f64) -> String {
    grouped(rate.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_all_spans_that_were_added() {
        let (mut fast, mut slow) = (Latency::new().expect("fits"), Latency::new().expect("fits"));
        (0..99).for_each(|_| fast.add(Duration::from_nanos(100)).expect("fits"));
        slow.add(Duration::from_secs(1)).expect("fits");
        fast.add_all(&slow).expect("fits");
        assert_eq!((fast.count(), fast.quantile(0.5)), (100, Duration::from_nanos(100)));
        assert!(fast.max() >= Duration::from_secs(1), "a long span is not cut off");
    }

    #[test]
    fn a_rate_of_no_time_at_all_is_still_a_number() {
        assert!(per_second(5, Duration::ZERO).is_finite());
        assert_eq!(per_second(5, Duration::from_secs(2)).to_string(), "2.5");
    }
}
