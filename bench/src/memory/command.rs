//! The order of things: measure, judge, print, write.

use anyhow::Result;

use super::markdown::markdown;
use super::panels::chart;
use super::results::Results;
use super::rounds::{CONTESTANTS, THREADS};
use super::{bars, bound, footprint, rounds};
use crate::args::Settings;
use crate::report::{Facts, keep, progress};

/// Measures everything, prints the table, and writes table, chart and JSON.
pub(crate) fn run(settings: &Settings) -> Result<()> {
    let windows = (CONTESTANTS.len() * THREADS.len()) as u64 * settings.rounds;
    let bar = progress(windows + 3 + settings.rounds);
    bar.set_message("cycles and replays");
    let (rates, counts_ns) = rounds::measure(settings, || bar.inc(1))?;
    bar.set_message("bytes a record");
    let footprints = footprint::measure(settings.keys, || bar.inc(1))?;
    bar.set_message("latency at the bound");
    let bound = bound::measure(settings, || bar.inc(1))?;
    bar.finish_and_clear();

    let bars = bars::judge(&rates, &footprints, &bound);
    let results = Results {
        facts: Facts::of_this_machine(),
        settings: settings.clone(),
        rates,
        counts_ns,
        footprints,
        bound,
        bars,
    };
    let table = markdown(&results);
    print!("{table}");
    keep(settings.results.as_deref(), "memory", &table, &chart(&results), &results)
}
