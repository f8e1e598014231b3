//! How long a new claim takes when the store is half full, full, and full but allowed to forget.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;
use semel::store::MemoryStore;
use semel::{Decision, ErrorKind};

use super::results::BoundCase;
use crate::args::Settings;
use crate::contestants::{Contestant, Engine};
use crate::report::median;
use crate::runtime::runtime;
use crate::stopwatch::Stopwatch;

/// How many claims are measured in each case of each round: few enough that half full stays half full, and
/// that no table has to grow meanwhile.
const CLAIMS: u64 = 5_000;
/// How many of them in a row, before the next case has its turn.
const IN_A_ROW: u64 = 250;

pub(super) const HALF: &str = "half full";
pub(super) const REFUSED: &str = "at the bound: refused";
/// The oldest done record gives way, and the new claim runs.
pub(super) const FORGETS: &str = "at the bound: forgets";

/// One case of one round.
struct Case {
    name: &'static str,
    engine: Engine,
    filled: u64,
    spans: Histogram<u64>,
}

/// Measures all rounds; `step` is called after each.
pub(super) fn measure(settings: &Settings, step: impl Fn()) -> Result<Vec<BoundCase>> {
    // One caller on one thread: what is measured is the claim, and not who waits for whom.
    let runtime = runtime(1)?;
    let mut rounds = Vec::new();
    for _ in 0..settings.rounds {
        let bound = settings.bound;
        let cases =
            runtime.block_on(runtime.spawn(round(bound))).context("a round did not reach its end")??;
        rounds.push(cases);
        step();
    }
    Ok([HALF, REFUSED, FORGETS]
        .into_iter()
        .enumerate()
        .map(|(at, name)| summary(name, at, &rounds))
        .collect())
}

async fn round(bound: u64) -> Result<Vec<Case>> {
    let records = usize::try_from(bound)?;
    let bounded = || MemoryStore::builder().records_max(records);
    let mut cases = [
        Case::new(HALF, bounded().build(), bound / 2 - CLAIMS / 2)?,
        Case::new(REFUSED, bounded().build(), bound)?,
        Case::new(FORGETS, bounded().forget_oldest(Duration::ZERO).build(), bound)?,
    ];
    // A store that was filled between the others and is gone when the claims start: they find memory that
    // was used before, and the first touch of a page is not taken for the price of a claim.
    let ballast = Engine::new(bounded().build());
    for number in 0..bound {
        for case in cases.iter().filter(|case| number < case.filled) {
            case.engine.cycle(number).await?;
        }
        ballast.cycle(number).await?;
    }
    drop(ballast);
    for start in (0..CLAIMS).step_by(usize::try_from(IN_A_ROW)?) {
        for case in &mut cases {
            for number in start..start + IN_A_ROW {
                case.claim(case.filled + number).await?;
            }
        }
    }
    Ok(cases.into())
}

impl Case {
    fn new(name: &'static str, store: MemoryStore, filled: u64) -> Result<Self> {
        Ok(Self { name, engine: Engine::new(store), filled, spans: Histogram::new(3)? })
    }

    async fn claim(&mut self, number: u64) -> Result<()> {
        let watch = Stopwatch::start();
        let answer = self.engine.decision(number).await;
        let span = watch.elapsed();
        match (self.name, answer) {
            (HALF | FORGETS, Ok(Decision::Run(_))) => {}
            (REFUSED, Err(error)) if error.kind() == ErrorKind::Full => {}
            (name, Ok(decision)) => bail!("{name}: a new claim was told {}", decision.word()),
            (name, Err(error)) => bail!("{name}: a new claim failed: {error}"),
        }
        Ok(self.spans.record(u64::try_from(span.as_nanos())?)?)
    }

    #[expect(clippy::cast_precision_loss, reason = "a span is read to three digits")]
    fn micros(&self, quantile: f64) -> f64 {
        self.spans.value_at_quantile(quantile) as f64 / 1e3
    }
}

fn summary(name: &'static str, at: usize, rounds: &[Vec<Case>]) -> BoundCase {
    let of = |quantile: f64| -> Vec<f64> {
        rounds.iter().filter_map(|cases| cases.get(at)).map(|case| case.micros(quantile)).collect()
    };
    let halves = rounds.iter().filter_map(|cases| cases.first()).map(|case| case.micros(0.99));
    let ratios: Vec<f64> = of(0.99).into_iter().zip(halves).map(|(p99, half)| p99 / half).collect();
    BoundCase { name, p50_us: median(&of(0.5)), p99_us: median(&of(0.99)), times_half: median(&ratios) }
}
