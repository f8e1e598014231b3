//! Cycles and replays per second: every round measures all contestants, one right after the other.

use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::task::JoinSet;

use super::results::{Rate, Times, Work};
use crate::args::Settings;
use crate::contestants::{Contestant, Engine, LeanMap, PlainMap, StoreAlone, roomy};
use crate::inputs;
use crate::report::median;
use crate::runtime::runtime;
use crate::stopwatch::{Stopwatch, processor_time};

/// In the order in which they are shown.
pub(super) const CONTESTANTS: [&str; 4] = [ENGINE, STORE, MAP, LEAN];
pub(super) const ENGINE: &str = "engine";
pub(super) const STORE: &str = "store alone";
pub(super) const MAP: &str = "DashMap, as usually written";
pub(super) const LEAN: &str = "DashMap, lean";
/// How many threads work at the same time.
pub(super) const THREADS: [usize; 2] = [1, 2];

/// One window.
struct Sample {
    round: u64,
    contestant: &'static str,
    threads: usize,
    work: Work,
    speed: Speed,
}

/// How fast one window went.
#[derive(Clone, Copy)]
struct Speed {
    per_second: f64,
    cpu_ns: f64,
}

/// Measures all rounds; `step` is called after each contestant of each.
pub(super) fn measure(settings: &Settings, step: impl Fn()) -> Result<(Vec<Rate>, f64)> {
    let mut samples = Vec::new();
    let mut counts_ns = Vec::new();
    for round in 0..settings.rounds {
        for threads in THREADS {
            // Another one starts each round: whoever comes first finds the memory in another state.
            let first = usize::try_from(round)? % CONTESTANTS.len();
            for contestant in CONTESTANTS.into_iter().cycle().skip(first).take(CONTESTANTS.len()) {
                let windows = windows(contestant, threads, settings)?;
                for (work, speed) in [(Work::Replays, windows.replays), (Work::Cycles, windows.cycles)] {
                    samples.push(Sample { round, contestant, threads, work, speed });
                }
                if contestant == ENGINE {
                    counts_ns.push(windows.counts.cpu_ns);
                }
                step();
            }
        }
    }
    Ok((summary(&samples), median(&counts_ns)))
}

/// The windows of one contestant, one after the other.
struct Windows {
    replays: Speed,
    /// What the replays left for later, done before anything else is measured: it must not fall into a window that
    /// it does not belong to.
    counts: Speed,
    cycles: Speed,
}

fn windows(contestant: &str, threads: usize, settings: &Settings) -> Result<Windows> {
    match contestant {
        ENGINE => windows_of(Engine::new(roomy()), threads, settings),
        STORE => windows_of(StoreAlone::new(roomy()), threads, settings),
        LEAN => windows_of(LeanMap::new(), threads, settings),
        _ => windows_of(PlainMap::new(), threads, settings),
    }
}

/// Loads the contestant, then measures replays at that size, and cycles from there on.
fn windows_of<C: Contestant>(contestant: C, threads: usize, settings: &Settings) -> Result<Windows> {
    let runtime = runtime(threads)?;
    let contestant = Arc::new(contestant);
    let (keys, window) = (settings.keys, settings.window);
    runtime.block_on(each(&contestant, threads, keys, |contestant, number| async move {
        contestant.cycle(number).await
    }))?;
    let replays = timed(window, || {
        runtime.block_on(each(&contestant, threads, window, move |contestant, turn| async move {
            contestant.replay(inputs::scattered(turn, keys)).await.map(drop)
        }))
    })?;
    let counts = timed(window, || runtime.block_on(contestant.catch_up()))?;
    let cycles = timed(window, || {
        runtime.block_on(each(&contestant, threads, window, move |contestant, turn| async move {
            contestant.cycle(keys + turn).await
        }))
    })?;
    Ok(Windows { replays, counts, cycles })
}

/// Makes all calls from one task a thread, each task one call after the other.
async fn each<C, W, F>(contestant: &Arc<C>, tasks: usize, calls: u64, work: W) -> Result<()>
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

#[expect(clippy::cast_precision_loss, reason = "a rate is read to three digits")]
fn timed(calls: u64, window: impl FnOnce() -> Result<()>) -> Result<Speed> {
    let (watch, ran) = (Stopwatch::start(), processor_time());
    window()?;
    let (took, ran) = (watch.elapsed(), processor_time().saturating_sub(ran));
    let calls = calls as f64;
    Ok(Speed { per_second: calls / took.as_secs_f64(), cpu_ns: ran.as_secs_f64() * 1e9 / calls })
}

fn summary(samples: &[Sample]) -> Vec<Rate> {
    let mut rates = Vec::new();
    for work in [Work::Cycles, Work::Replays] {
        for threads in THREADS {
            for contestant in CONTESTANTS {
                rates.push(summary_of(samples, contestant, work, threads));
            }
        }
    }
    rates
}

fn summary_of(samples: &[Sample], contestant: &'static str, work: Work, threads: usize) -> Rate {
    let of = |name: &'static str| {
        samples.iter().filter(move |sample| {
            sample.contestant == name && sample.work == work && sample.threads == threads
        })
    };
    let times = |map: &'static str| -> Times {
        let beside = |sample: &Sample| {
            let map = of(map).find(|map| map.round == sample.round)?;
            Some((sample.speed.per_second / map.speed.per_second, map.speed.cpu_ns / sample.speed.cpu_ns))
        };
        let (rates, cpu): (Vec<_>, Vec<_>) = of(contestant).filter_map(beside).unzip();
        Times { rate: median(&rates), cpu: median(&cpu) }
    };
    let rates: Vec<f64> = of(contestant).map(|sample| sample.speed.per_second).collect();
    let cpu_ns: Vec<f64> = of(contestant).map(|sample| sample.speed.cpu_ns).collect();
    Rate {
        contestant,
        work,
        threads,
        median: median(&rates),
        min: rates.iter().copied().fold(f64::INFINITY, f64::min),
        max: rates.iter().copied().fold(0.0, f64::max),
        cpu_ns: median(&cpu_ns),
        times_map: times(MAP),
        times_lean: times(LEAN),
    }
}
