//! The order of things: measure, judge, print, write.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

use super::results::Results;
use super::rounds::{CONTESTANTS, THREADS};
use super::{bars, bound, footprint, rounds};
use crate::args::Settings;
use crate::report::{self, Facts};

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
    let table = report::markdown(&results);
    print!("{table}");
    write(settings, "md", &table)?;
    write(settings, "svg", &report::chart(&results))?;
    write(settings, "json", &format!("{}\n", serde_json::to_string_pretty(&results)?))
}

fn write(settings: &Settings, extension: &str, text: &str) -> Result<()> {
    let folder = settings.results.clone().unwrap_or_else(|| {
        let bench =
            std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("bench"), PathBuf::from);
        bench.join("results")
    });
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let path = folder.join(format!("memory.{extension}"));
    fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// A bar on stderr, if that is a terminal.
fn progress(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{msg:20} {wide_bar} {pos}/{len} {eta:>4}") {
        bar.set_style(style);
    }
    bar
}
