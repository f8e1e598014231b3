//! The order of things: start what outlives a window, measure, judge, print, write.

use anyhow::{Context, Result};
use test_services::{AppendFsync, Redis};

use super::entry::Places;
use super::markdown::markdown;
use super::panels::chart;
use super::results::Results;
use super::{bars, nginx, proxy, rounds};
use crate::args::HttpSettings;
use crate::file::TempFolder;
use crate::report::{Facts, filesystem, keep, progress};
use crate::servers::{neighbours_share, redis_version};

/// Measures everything that was asked for, prints the tables, and writes tables, chart and JSON.
pub(crate) fn run(settings: &HttpSettings) -> Result<()> {
    let folder = TempFolder::under(settings.folder.as_deref())?;
    let filesystem = filesystem(folder.path(), "say --folder with one on a disk")?;
    let redis = Redis::start(AppendFsync::EverySecond)?;
    let semel = proxy::program(settings.semel.as_deref());
    let places = Places { folder: &folder, redis: &redis.url(), semel: &semel };
    let (nginx, redis) = (nginx::version()?, redis_version(&redis).context("Redis does not answer")?);
    let neighbours_share = neighbours_share();
    let bar = progress(rounds::steps(settings));
    let samples = rounds::measure(settings, &places, &bar)?;
    bar.finish_and_clear();
    let results = Results {
        facts: Facts::of_this_machine(),
        nginx,
        redis,
        filesystem,
        neighbours_share,
        settings: settings.clone(),
        lines: settings.parts().flat_map(|part| samples.lines(part)).collect(),
        bars: settings
            .parts()
            .flat_map(|part| bars::judge(&samples, part))
            // What was not measured is not reached, unless nobody wanted it measured.
            .filter(|bar| settings.line.is_none() || !bar.found.contains("NaN"))
            .collect(),
    };
    let table = markdown(&results);
    print!("{table}");
    // A part must not take the place of the whole.
    if !settings.is_whole() && settings.results.is_none() {
        return Ok(());
    }
    keep(settings.results.as_deref(), "http", &table, &chart(&results), &results)
}
