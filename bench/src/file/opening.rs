//! How long a store takes to open, after a clean stop and after kill -9, and how much memory it has then.

use std::fs;

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use super::folder::TempFolder;
use super::results::{Left, Opening};
use super::task::{THREADS, Task, ask, fill_and_kill, in_a_process_of_its_own};
use super::who::Who;
use crate::args::{FileAsk, FileSettings, Part};
use crate::counting;
use crate::inputs::scattered;
use crate::report::{Spread, median};
use crate::runtime::runtime;
use crate::stopwatch::Stopwatch;

/// How often the durable store is opened in each case; the median counts.
const TIMES: u64 = 3;
/// How many times as many keys the large store has whose memory is measured.
const LARGE_TIMES: u64 = 5;
/// How many keys are looked up after opening, to see that they are there.
const LOOKED_UP: u64 = 1_000;

/// What one opening found out.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Opened {
    seconds: f64,
    resident_bytes: u64,
    anonymous_bytes: u64,
    allocated_bytes: i64,
}

/// How far the bar goes for all of this.
pub(super) fn steps(settings: &FileSettings) -> u64 {
    let keepers = Who::KEEPERS.len() as u64;
    let killed = if settings.has(Part::Reopen) { keepers } else { 0 };
    keepers + killed + u64::from(settings.has(Part::Memory))
}

/// Measures every way in which a store can have been left.
pub(super) fn measure(
    settings: &FileSettings,
    folder: &TempFolder,
    bar: &ProgressBar,
) -> Result<Vec<Opening>> {
    let keys = settings.keys;
    let mut found = Vec::new();
    for who in Who::KEEPERS {
        bar.set_message(format!("opening {}", who.name()));
        found.push(clean(who, keys, folder)?);
        bar.inc(1);
    }
    if settings.has(Part::Memory) {
        bar.set_message("opening a large one");
        found.push(clean(Who::SemelFile, keys * LARGE_TIMES, folder)?);
        bar.inc(1);
    }
    if settings.has(Part::Reopen) {
        for who in Who::KEEPERS {
            bar.set_message(format!("killing {}", who.name()));
            found.push(killed(who, keys, folder)?);
            bar.inc(1);
        }
    }
    Ok(found)
}

fn clean(who: Who, keys: u64, folder: &TempFolder) -> Result<Opening> {
    let place = folder.fresh("opening")?;
    in_a_process_of_its_own::<()>(&ask(Task::Fill, who, &place, keys))?;
    let open = |_| in_a_process_of_its_own(&ask(Task::Open, who, &place, keys));
    let opened = (0..TIMES).map(open).collect::<Result<Vec<_>>>()?;
    fs::remove_dir_all(&place)?;
    Ok(summary(who, keys, Left::Clean, &opened))
}

fn killed(who: Who, keys: u64, folder: &TempFolder) -> Result<Opening> {
    let times = if who == Who::SemelFile { TIMES } else { 1 };
    let mut opened = Vec::new();
    // Opening repairs, so there is only one opening after each kill.
    for _ in 0..times {
        let place = folder.fresh("opening")?;
        fill_and_kill(who, &place, keys)?;
        opened.push(in_a_process_of_its_own(&ask(Task::Open, who, &place, keys))?);
        fs::remove_dir_all(&place)?;
    }
    Ok(summary(who, keys, Left::Killed, &opened))
}

#[expect(clippy::cast_precision_loss, reason = "bytes a key are read to three digits")]
fn summary(who: Who, keys: u64, left: Left, opened: &[Opened]) -> Opening {
    let of = |number: fn(&Opened) -> f64| -> Vec<f64> { opened.iter().map(number).collect() };
    let a_key = |number| median(&of(number)) / keys as f64;
    Opening {
        contestant: who.name(),
        keys,
        left,
        seconds: Spread::of(&of(|opened| opened.seconds)),
        resident_bytes: a_key(|opened| opened.resident_bytes as f64),
        anonymous_bytes: a_key(|opened| opened.anonymous_bytes as f64),
        allocated_bytes: a_key(|opened| opened.allocated_bytes as f64),
    }
}

/// The other side: opens what is there, up to the first answer, and looks whether the keys are there.
pub(super) fn open(ask: &FileAsk) -> Result<Opened> {
    let runtime = runtime(THREADS)?;
    let before = Resident::of_this_process()?;
    counting::start();
    let watch = Stopwatch::start();
    let entrant = ask.who.open(&ask.folder, ask.keys)?;
    let bytes = entrant.replay(&runtime, ask.keys - 1)?;
    let seconds = watch.elapsed().as_secs_f64();
    let allocated_bytes = counting::allocated_bytes();
    let after = Resident::of_this_process()?;
    for turn in 0..LOOKED_UP {
        ensure!(
            entrant.replay(&runtime, scattered(turn, ask.keys))? == bytes,
            "an outcome has another length"
        );
    }
    Ok(Opened {
        seconds,
        resident_bytes: after.all.saturating_sub(before.all),
        anonymous_bytes: after.anonymous.saturating_sub(before.anonymous),
        allocated_bytes,
    })
}

/// What is in memory, in bytes.
struct Resident {
    all: u64,
    anonymous: u64,
}

impl Resident {
    fn of_this_process() -> Result<Self> {
        let status = fs::read_to_string("/proc/self/status").context("memory is read on Linux only")?;
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_suffix("kB"));
            let kilobytes =
                line.with_context(|| format!("the status has no {name}"))?.trim().parse::<u64>()?;
            anyhow::Ok(kilobytes * 1_024)
        };
        Ok(Self { all: bytes("VmRSS:")?, anonymous: bytes("RssAnon:")? })
    }
}
