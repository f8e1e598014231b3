//! `cargo xtask verify`: what `test` runs and more, with nothing skipped.

use anyhow::Result;

use crate::steps::{self, Missing};
use crate::{run, tidy};

/// Run what `test` runs, and the documentation, the measurements' lints and the dependencies' licences.
///
/// Fails where rustfmt or clippy is missing, instead of skipping them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<()> {
    steps::format(Missing::Refuse)?;
    tidy::run(&tidy::Args::default())?;
    steps::lints(Missing::Refuse)?;
    steps::bench_lints()?;
    steps::docs()?;
    steps::dependencies()?;
    steps::tests()?;
    run::passed("verified");
    Ok(())
}
