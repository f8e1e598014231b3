//! The order of things: measure, judge, print, write.

use anyhow::Result;

use super::folder::TempFolder;
use super::markdown::markdown;
use super::panels::chart;
use super::results::Results;
use super::task::THREADS;
use super::{bars, disk, expiry, growth, opening, rounds};
use crate::args::{FileSettings, Part};
use crate::report::{Facts, filesystem, keep, progress};
use crate::runtime::runtime;

/// Measures everything that was asked for, prints the tables, and writes tables, chart and JSON.
pub(crate) fn run(settings: &FileSettings) -> Result<()> {
    let folder = TempFolder::under(settings.folder.as_deref())?;
    let filesystem = filesystem(folder.path(), "say --folder with one on a disk")?;
    eprintln!("stores are made in {}, {filesystem}", folder.path().display());
    let results = measure(settings, &folder, filesystem)?;
    drop(folder);
    let table = markdown(&results);
    print!("{table}");
    // A part must not take the place of the whole.
    if !settings.only.is_empty() && settings.results.is_none() {
        return Ok(());
    }
    keep(settings.results.as_deref(), "file", &table, &chart(&results), &results)
}

fn measure(settings: &FileSettings, folder: &TempFolder, filesystem: String) -> Result<Results> {
    let bar = progress(steps(settings));
    let mut results = Results {
        facts: Facts::of_this_machine(),
        filesystem,
        settings: settings.clone(),
        throughput: None,
        openings: Vec::new(),
        expiries: Vec::new(),
        growth: None,
        disk: None,
        bars: Vec::new(),
    };
    if settings.has(Part::Throughput) {
        let found = rounds::measure(settings, folder, &runtime(THREADS)?, &bar)?;
        results.bars.extend(bars::of_throughput(&found));
        results.throughput = Some(found);
    }
    if settings.has(Part::Reopen) || settings.has(Part::Memory) {
        results.openings = opening::measure(settings, folder, &bar)?;
        results.bars.extend(bars::of_openings(&results.openings, |part| settings.has(part)));
    }
    if settings.has(Part::Expiry) {
        results.expiries = expiry::measure(settings.keys, folder, &bar)?;
        results.bars.extend(bars::of_expiries(&results.expiries));
    }
    if settings.has(Part::Growth) {
        let found = growth::measure(settings, folder, &bar)?;
        results.bars.extend(bars::of_growth(&found));
        results.growth = Some(found);
    }
    if settings.has(Part::Disk) {
        let found = disk::measure(settings.keys, folder, &bar)?;
        results.bars.extend(bars::of_disk(&found));
        results.disk = Some(found);
    }
    bar.finish_and_clear();
    Ok(results)
}

/// How far the bar goes.
fn steps(settings: &FileSettings) -> u64 {
    let opens = settings.has(Part::Reopen) || settings.has(Part::Memory);
    let parts = [
        (settings.has(Part::Throughput), rounds::steps(settings)),
        (opens, opening::steps(settings)),
        (settings.has(Part::Expiry), expiry::steps()),
        (settings.has(Part::Growth), 1),
        (settings.has(Part::Disk), 1),
    ];
    parts.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, steps)| steps).sum()
}
