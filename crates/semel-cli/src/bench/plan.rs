//! What is to be measured, and the way from there to the report.

use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::Result;
use semel::Semel;
use semel_ops::store_url::Address;

use super::{measure, report};
use crate::terminal::out;

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
pub(crate) async fn run(plan: &Plan) -> Result<()> {
    let store = plan.store.open_with_room(plan.keys.get()).await?;
    let semel = Semel::builder_shared(store.store()).build()?;
    let measured = measure::measure(&semel, plan).await?;
    match plan.report {
        Report::Table => out::print(&report::table(plan, &measured)),
        Report::Json => out::line(&report::json(plan, &measured)?),
    }
}
