//! What is to be measured, and the way from there to the report.

use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::{Context, Result};
use semel::Semel;

use super::{measure, report};
use crate::store::Address;

/// What is to be measured.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Which store.
    pub(crate) store: Address,
    /// How many keys are claimed and completed.
    pub(crate) keys: NonZeroUsize,
    /// How long they are replayed.
    pub(crate) replays_for: Duration,
    /// How many callers ask at the same time.
    pub(crate) callers: NonZeroUsize,
    /// How the numbers are shown.
    pub(crate) report: Report,
}

/// How the numbers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// For people.
    Table,
    /// For scripts.
    Json,
}

/// Measures, and prints the report.
pub(crate) fn run(plan: &Plan) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot start; are threads or memory limited?")?;
    let measured = runtime.block_on(async {
        let semel = Semel::builder_shared(plan.store.open(plan.keys.get())?).build()?;
        measure::measure(&semel, plan).await
    })?;
    match plan.report {
        Report::Table => print!("{}", report::table(plan, &measured)),
        Report::Json => println!("{}", report::json(plan, &measured)?),
    }
    Ok(())
}
