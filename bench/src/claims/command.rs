//! The order of things: start what outlives a window, measure, judge, print, write.

use anyhow::{Context, Result};

use super::markdown::markdown;
use super::panels::chart;
use super::results::Results;
use super::rounds::{self, Places};
use super::{bars, redis};
use crate::args::ClaimsSettings;
use crate::file::TempFolder;
use crate::http::semel_program;
use crate::report::{Facts, filesystem, keep, progress};
use crate::servers::{neighbours_share, redis_version};

/// Measures everything, prints the tables, and writes tables, chart and JSON.
pub(crate) fn run(settings: &ClaimsSettings) -> Result<()> {
    let folder = TempFolder::under(settings.folder.as_deref())?;
    let filesystem = filesystem(folder.path(), "say --folder with one on a disk")?;
    let redis = redis::start()?;
    let semel = semel_program(settings.semel.as_deref());
    let version = redis_version(&redis).context("Redis does not answer")?;
    let neighbours_share = neighbours_share();
    let bar = progress(rounds::steps(settings));
    let samples = rounds::measure(settings, &Places { folder: &folder, redis: &redis, semel: &semel }, &bar)?;
    bar.finish_and_clear();
    let results = Results {
        facts: Facts::of_this_machine(),
        redis: version,
        filesystem,
        neighbours_share,
        settings: settings.clone(),
        lines: samples.lines(),
        bars: bars::judge(&samples),
    };
    let table = markdown(&results);
    print!("{table}");
    keep(settings.results.as_deref(), "server", &table, &chart(&results), &results)
}
