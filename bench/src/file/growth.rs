//! Whether a store gets slower as it grows: cycles per second with few keys and with ten times as many.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;

use super::folder::TempFolder;
use super::results::Growth;
use super::task::{THREADS, Task, ask, in_a_process_of_its_own};
use super::who::Who;
use crate::args::{FileAsk, FileSettings};
use crate::report::{Spread, median};
use crate::runtime::runtime;
use crate::window::{Plan, until_quiet};

const CALLERS: usize = 1_024;

/// The keys of the small store and of the large one.
const fn sizes(keys: u64) -> (u64, u64) {
    (keys / 2, keys * 5)
}

/// Measures the durable store.
pub(super) fn measure(settings: &FileSettings, folder: &TempFolder, bar: &ProgressBar) -> Result<Growth> {
    bar.set_message("growing");
    let place = folder.fresh("growth")?;
    let ask = FileAsk {
        rounds: settings.rounds,
        window_ms: settings.window_ms,
        ..ask(Task::Grow, Who::SemelFile, &place, settings.keys)
    };
    let rounds: Vec<(f64, f64)> = in_a_process_of_its_own(&ask)?;
    fs::remove_dir_all(&place)?;
    bar.inc(1);
    let (small_keys, large_keys) = sizes(settings.keys);
    let (small, large): (Vec<_>, Vec<_>) = rounds.iter().copied().unzip();
    let ratios: Vec<_> = rounds.iter().map(|(small, large)| large / small).collect();
    Ok(Growth {
        callers: CALLERS,
        small_keys,
        large_keys,
        small: Spread::of(&small),
        large: Spread::of(&large),
        ratio: median(&ratios),
    })
}

/// The other side: both stores are open, and have their windows in turn. Cycles per second of the small one and of the
/// large one, for every round.
pub(super) fn grow(ask: &FileAsk) -> Result<Vec<(f64, f64)>> {
    let runtime = runtime(THREADS)?;
    let (small_keys, large_keys) = sizes(ask.keys);
    let load = |name: &str, keys| {
        let folder = ask.folder.join(name);
        fs::create_dir_all(&folder)?;
        ask.who.load(&folder, keys, &runtime, |_| ())
    };
    let (small, large) = (load("small", small_keys)?, load("large", large_keys)?);
    until_quiet();
    let plan = Plan { callers: CALLERS, span: Duration::from_millis(ask.window_ms) };
    let mut rounds = Vec::new();
    for round in 0..ask.rounds {
        let mut cycles = (0.0, 0.0);
        // Each goes first in every other round.
        if round.is_multiple_of(2) {
            cycles.0 = small.window(&runtime, plan)?.rate;
        }
        cycles.1 = large.window(&runtime, plan)?.rate;
        if !round.is_multiple_of(2) {
            cycles.0 = small.window(&runtime, plan)?.rate;
        }
        rounds.push(cycles);
    }
    Ok(rounds)
}
