//! `screenshots`: pictures of every page of the dashboard.

use std::path::PathBuf;

use anyhow::{Context, Result};
use xtask::needs;
use xtask::run::{passed, started};

use super::pictures::{PICTURE_STEPS, pictures};
use crate::progress::Progress;
use crate::release;

/// Make pictures of every page of the dashboard, in light and dark, on a desktop and on a phone.
///
/// A server of its own is filled with what a shop would do for half a minute; nothing is left of it but the pictures.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the pictures are written.
    #[arg(default_value = "target/screenshots")]
    folder: PathBuf,
    /// Look at this binary's server, instead of that of the release one that is built first.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Makes them.
pub fn run(args: &Args) -> Result<()> {
    needs::for_browser()?;
    let binary = args.binary.clone().map_or_else(release::binary, Ok)?;
    started("screenshots");
    let store = tempfile::tempdir().context("there is no room for a store")?;
    let bar = Progress::new("screenshots", PICTURE_STEPS);
    let url = format!("file:{}", store.path().join("store").display());
    let made = pictures(&binary, &url, &args.folder, &|| bar.step());
    drop(bar);
    let made = made?;
    for path in &made {
        println!("{}", path.display());
    }
    passed(&format!("{} pictures in {}", made.len(), args.folder.display()));
    Ok(())
}
