//! `cargo xtask test`: everything that a change must pass.

use anyhow::Result;

use crate::steps::{self, Missing};
use crate::{run, tidy};

/// Run everything that a change must pass: format, lints, tidy, tests, documentation tests, a few crashes.
///
/// Installs what the tests need and this machine lacks. Format and lints are skipped, with a word why,
/// where rustfmt or clippy is not installed; where they are, a warning is a failure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<()> {
    steps::format(Missing::Skip)?;
    tidy::run(&tidy::Args::default())?;
    steps::lints(Missing::Skip)?;
    steps::tests()?;
    run::passed("everything that could run here");
    Ok(())
}
