//! The order of things: start servers, load, measure, look everything up, judge, print, write.

use anyhow::Result;

use super::bars;
use super::markdown::markdown;
use super::panels::chart;
use super::place::{Entry, Grounds, Place};
use super::results::Results;
use super::rounds::{self, THREADS};
use crate::args::StreamSettings;
use crate::report::{Facts, keep, progress};
use crate::runtime::runtime;
use crate::servers::neighbours_share;
use crate::window::until_quiet;

/// Measures everything, prints the tables, and writes tables, chart and JSON.
pub(crate) fn run(settings: &StreamSettings) -> Result<()> {
    let grounds = Grounds::start(settings.folder.as_deref())?;
    let (filesystem, servers) = (grounds.filesystem()?, grounds.servers()?);
    let runtime = runtime(THREADS)?;
    let bar = progress(Place::ALL.len() as u64 + rounds::steps(settings));
    let mut entries: Vec<Entry> = Vec::new();
    for place in Place::ALL {
        bar.set_message(format!("loading {}", place.name()));
        entries.push(runtime.block_on(grounds.open(place, settings.events))?);
        bar.inc(1);
    }
    until_quiet();
    let neighbours_share = neighbours_share();
    let samples = rounds::measure(&mut entries, settings, &runtime, &bar)?;
    bar.set_message("looking every receipt up");
    let mut receipts = 0;
    for entry in &entries {
        receipts += entry.ensure_kept(&runtime)?;
    }
    bar.finish_and_clear();
    let results = Results {
        facts: Facts::of_this_machine(),
        servers,
        filesystem,
        neighbours_share,
        settings: settings.clone(),
        lines: samples.lines(),
        receipts,
        bars: bars::judge(&samples),
    };
    let table = markdown(&results);
    print!("{table}");
    keep(settings.results.as_deref(), "stream", &table, &chart(&results), &results)
}
