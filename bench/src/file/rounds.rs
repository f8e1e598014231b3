//! Cycles per second: every round measures all contestants, one right after the other.

use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;
use tokio::runtime::Runtime;

use super::folder::TempFolder;
use super::raw_sync::RawSync;
use super::results::{Rate, RawRates, Throughput};
use super::who::Who;
use crate::args::FileSettings;
use crate::report::{Spread, median};
use crate::stopwatch::{MachineTime, Stopwatch, processor_time};
use crate::window::{Plan, Window, until_quiet};

/// How many callers work at the same time.
pub(super) const CALLERS: [usize; 3] = [1, 64, 1_024];

/// One window.
struct Sample {
    round: u64,
    who: Who,
    callers: usize,
    window: Window,
}

/// One round's syncs per second.
struct RawSample {
    round: u64,
    zeroed: f64,
    growing: f64,
}

/// How far the bar goes for all of this.
pub(super) fn steps(settings: &FileSettings) -> u64 {
    let windows = (Who::ALL.len() * CALLERS.len() + 1) as u64 * settings.rounds;
    Who::ALL.len() as u64 + windows
}

/// Loads all contestants, then measures all rounds.
pub(super) fn measure(
    settings: &FileSettings,
    folder: &TempFolder,
    runtime: &Runtime,
    bar: &ProgressBar,
) -> Result<Throughput> {
    let mut entrants = Vec::new();
    for who in Who::ALL {
        bar.set_message(format!("loading {}", who.name()));
        let place = folder.fresh(&who.word())?;
        entrants.push((who, who.load(&place, settings.keys, runtime, |_| bar.tick())?));
        bar.inc(1);
    }
    let mut raw_sync = RawSync::new(&folder.fresh("raw-sync")?)?;
    bar.set_message("cycles");
    until_quiet();
    let neighbours = Neighbours::watch();
    let span = Duration::from_millis(settings.window_ms);
    let (mut samples, mut raw) = (Vec::new(), Vec::new());
    for round in 0..settings.rounds {
        // Beside the windows of one lone caller, which are compared with it.
        raw.push(RawSample { round, zeroed: raw_sync.zeroed(span)?, growing: raw_sync.growing(span)? });
        bar.inc(1);
        for callers in CALLERS {
            // Another one starts each round: whoever comes first finds the disk in another state.
            let first = usize::try_from(round)? % entrants.len();
            for (who, entrant) in entrants.iter().cycle().skip(first).take(entrants.len()) {
                let window = entrant.window(runtime, Plan { callers, span })?;
                samples.push(Sample { round, who: *who, callers, window });
                bar.inc(1);
            }
        }
    }
    let neighbours_share = neighbours.share();
    drop(entrants);
    folder.clear()?;
    Ok(Throughput { rates: rates(&samples), raw: raw_rates(&raw, &samples), neighbours_share })
}

/// What other processes do on this machine, since it is watched.
struct Neighbours {
    watch: Stopwatch,
    machine: MachineTime,
    own: Duration,
}

impl Neighbours {
    fn watch() -> Self {
        Self { watch: Stopwatch::start(), machine: MachineTime::now(), own: processor_time() }
    }

    /// How much of the machine they took, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "cores are few")]
    fn share(&self) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let own = processor_time().saturating_sub(self.own).as_secs_f64();
        let own_share = own / (self.watch.elapsed().as_secs_f64() * cores);
        (MachineTime::now().busy_share_since(self.machine) - own_share).clamp(0.0, 1.0)
    }
}

fn rates(samples: &[Sample]) -> Vec<Rate> {
    CALLERS.into_iter().flat_map(|callers| Who::ALL.map(|who| rate(samples, who, callers))).collect()
}

fn rate(samples: &[Sample], who: Who, callers: usize) -> Rate {
    let of = |number: fn(&Window) -> f64| -> Vec<f64> {
        windows(samples, who, callers).map(|(_, window)| number(window)).collect()
    };
    let times = windows(samples, who, callers).filter_map(|(round, window)| {
        let (_, store) = windows(samples, Who::SemelFile, callers).find(|(other, _)| *other == round)?;
        Some(store.rate / window.rate)
    });
    Rate {
        contestant: who.name(),
        callers,
        cycles: Spread::of(&of(|window| window.rate)),
        claim_p50_us: median(&of(|window| window.claim_p50_us)),
        claim_p99_us: median(&of(|window| window.claim_p99_us)),
        cpu_us: median(&of(|window| window.cpu_us)),
        store_times: median(&times.collect::<Vec<_>>()),
    }
}

fn raw_rates(raw: &[RawSample], samples: &[Sample]) -> RawRates {
    let shares = raw.iter().filter_map(|raw| {
        let (_, store) = windows(samples, Who::SemelFile, 1).find(|(round, _)| *round == raw.round)?;
        Some(store.rate / (raw.zeroed / 2.0))
    });
    RawRates {
        zeroed: Spread::of(&raw.iter().map(|raw| raw.zeroed).collect::<Vec<_>>()),
        growing: Spread::of(&raw.iter().map(|raw| raw.growing).collect::<Vec<_>>()),
        lone_caller_share: median(&shares.collect::<Vec<_>>()),
    }
}

/// The windows of one contestant with so many callers, each with its round.
fn windows(samples: &[Sample], who: Who, callers: usize) -> impl Iterator<Item = (u64, &Window)> {
    let is_it = move |sample: &&Sample| (sample.who, sample.callers) == (who, callers);
    samples.iter().filter(is_it).map(|sample| (sample.round, &sample.window))
}
