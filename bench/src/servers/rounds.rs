//! Windows of every contestant, one right after the other, in every round.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;
use tokio::runtime::Runtime;

use super::entry::{Entry, SEMEL};
use super::results::{Rate, Work};
use crate::args::ServerSettings;
use crate::report::{Spread, median};
use crate::stopwatch::MachineTime;
use crate::window::{Plan, Window};

/// How many callers work at the same time.
pub(super) const CALLERS: [usize; 3] = [1, 32, 256];
/// Threads that callers run on; the server has processes of its own.
pub(super) const THREADS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Cycles,
    Replays,
}

/// One window.
struct Sample {
    round: u64,
    name: &'static str,
    setting: &'static str,
    callers: usize,
    kind: Kind,
    window: Window,
}

/// How far the bar goes for so many contestants.
pub(super) fn steps(entries: usize, settings: &ServerSettings) -> u64 {
    (entries * CALLERS.len() * 2) as u64 * settings.rounds
}

/// Measures all rounds.
pub(super) fn measure(
    entries: &[Entry],
    settings: &ServerSettings,
    runtime: &Runtime,
    bar: &ProgressBar,
) -> Result<Vec<Rate>> {
    let span = Duration::from_millis(settings.window_ms);
    let mut samples = Vec::new();
    for round in 0..settings.rounds {
        for callers in CALLERS {
            for kind in [Kind::Cycles, Kind::Replays] {
                // Another one starts each round: whoever comes first finds the server in another state.
                let first = usize::try_from(round)? % entries.len();
                for entry in entries.iter().cycle().skip(first).take(entries.len()) {
                    let Entry { name, setting, entrant } = entry;
                    bar.set_message(format!("{name}, {callers} callers"));
                    let plan = Plan { callers, span };
                    let window = match kind {
                        Kind::Cycles => entrant.window(runtime, plan)?,
                        Kind::Replays => entrant.replays(runtime, plan)?,
                    };
                    samples.push(Sample { round, name, setting, callers, kind, window });
                    bar.inc(1);
                }
            }
        }
    }
    let of_callers = |callers| entries.iter().map(move |entry| (entry, callers));
    Ok(CALLERS
        .into_iter()
        .flat_map(of_callers)
        .map(|(entry, callers)| rate(&samples, entry, callers))
        .collect())
}

/// How much of the machine others take, from 0 to 1, while nothing here is to be done.
pub(crate) fn neighbours_share() -> f64 {
    let before = MachineTime::now();
    sleep(Duration::from_secs(1));
    MachineTime::now().busy_share_since(before)
}

fn rate(samples: &[Sample], entry: &Entry, callers: usize) -> Rate {
    let work = |kind| {
        let is_beside = |sample: &&Sample| {
            (sample.setting, sample.callers, sample.kind) == (entry.setting, callers, kind)
        };
        let beside: Vec<&Sample> = samples.iter().filter(is_beside).collect();
        work(&beside, entry.name)
    };
    Rate {
        contestant: entry.name,
        setting: entry.setting,
        callers,
        cycles: work(Kind::Cycles),
        replays: work(Kind::Replays),
    }
}

/// What one contestant did, among windows of one kind with so many callers.
fn work(samples: &[&Sample], name: &str) -> Work {
    let windows = |name: &str| -> Vec<(u64, Window)> {
        let own = samples.iter().filter(|sample| sample.name == name);
        own.map(|sample| (sample.round, sample.window)).collect()
    };
    let (own, semel) = (windows(name), windows(SEMEL));
    let of =
        |number: fn(&Window) -> f64| -> Vec<f64> { own.iter().map(|(_, window)| number(window)).collect() };
    let times = |number: fn(&Window) -> f64| {
        let ratios = own.iter().filter_map(|(round, window)| {
            let (_, semel) = semel.iter().find(|(other, _)| other == round)?;
            Some(number(semel) / number(window))
        });
        median(&ratios.collect::<Vec<_>>())
    };
    Work {
        per_second: Spread::of(&of(|window| window.rate)),
        sustained: median(&of(|window| window.sustained)),
        claim_p50_us: median(&of(|window| window.claim_p50_us)),
        claim_p99_us: median(&of(|window| window.claim_p99_us)),
        cpu_us: median(&of(|window| window.cpu_us)),
        semel_times: times(|window| window.rate),
        semel_sustained_times: times(|window| window.sustained),
        semel_cpu_times: times(|window| window.cpu_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(round: u64, name: &'static str, rate: f64, cpu_us: f64) -> Sample {
        let window = Window { rate, sustained: rate / 2.0, claim_p50_us: 1.0, claim_p99_us: 1.0, cpu_us };
        Sample { round, name, setting: "", callers: 1, kind: Kind::Cycles, window }
    }

    #[test]
    fn a_contestant_is_compared_with_semel_in_its_own_round() {
        let samples = [
            sample(0, SEMEL, 400.0, 1.0),
            sample(0, "peer", 100.0, 2.0),
            sample(1, "peer", 50.0, 2.0),
            sample(1, SEMEL, 100.0, 1.0),
            sample(2, SEMEL, 900.0, 1.0),
            sample(2, "peer", 100.0, 4.0),
        ];
        let peer = work(&samples.iter().collect::<Vec<_>>(), "peer");
        assert_eq!((peer.per_second.median, peer.per_second.min), (100.0, 50.0));
        // 4, 2 and 9 times as many; half, half and a quarter of the processor time.
        assert_eq!((peer.semel_times, peer.semel_cpu_times, peer.semel_sustained_times), (4.0, 0.5, 4.0));
    }
}
