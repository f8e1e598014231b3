//! `semel sweep`: removes what is past its retention, in bounded batches.

use anyhow::Result;
use semel_ops::store_url::Address;
use serde_json::json;

use crate::opening;
use crate::terminal::bar::Bar;
use crate::terminal::{number, out};

/// How many records a batch removes at most: short enough to be in nobody's way.
const BATCH: usize = 1_024;

/// What is to be swept.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) store: Address,
    /// How many records to remove at most; `None` for all that are due.
    pub(crate) limit: Option<usize>,
    pub(crate) json: bool,
}

pub(crate) async fn run(plan: &Sweep) -> Result<()> {
    let store = opening::open_existing(&plan.store).await?;
    let (mut removed, mut more_left) = (0_usize, true);
    let bar = Bar::endless("removed");
    while more_left {
        let batch = plan.limit.map_or(BATCH, |limit| limit.saturating_sub(removed).min(BATCH));
        if batch == 0 {
            break;
        }
        let swept = store.sweep(batch).await?.value;
        removed = removed.saturating_add(swept.removed);
        more_left = swept.more_left;
        bar.reached(0, removed as u64);
    }
    drop(bar);
    if plan.json {
        return out::json(&json!({ "removed": removed, "more_left": more_left }));
    }
    let rest = if more_left { "there may be more: sweep again" } else { "nothing else is due" };
    out::line(&format!("Removed {} past their retention; {rest}.", number::counted(removed as u64, "record")))
}
