//! Where the numbers of a run go, and how far a run is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// The folder of this workspace.
pub(crate) fn workspace() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("bench"), PathBuf::from)
}

/// Writes table, chart and JSON as `NAME.md`, `NAME.svg` and `NAME.json`; to `results` of this workspace unless said.
pub(crate) fn keep(
    folder: Option<&Path>,
    name: &str,
    table: &str,
    chart: &str,
    numbers: &impl Serialize,
) -> Result<()> {
    let folder = folder.map_or_else(|| workspace().join("results"), Path::to_path_buf);
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let json = format!("{}\n", serde_json::to_string_pretty(numbers)?);
    for (extension, text) in [("md", table), ("svg", chart), ("json", &json)] {
        let path = folder.join(format!("{name}.{extension}"));
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}

/// A bar on stderr, if that is a terminal.
pub(crate) fn progress(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{msg:28} {wide_bar} {pos}/{len} {eta:>4}") {
        bar.set_style(style);
    }
    bar
}
