//! `semel sweep`: removes what is past its retention, in bounded batches.

use anyhow::Result;
use serde_json::json;

use crate::args::at_least_one;
use crate::store_arg::StoreArg;
use crate::terminal::{Bar, counted, out};

/// How many records a batch removes at most: short enough to be in nobody's way.
const BATCH: usize = 1_024;

#[derive(Debug, clap::Args)]
pub(crate) struct SweepArgs {
    /// How many records to remove at most; all that are due unless said
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl SweepArgs {
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let limit = self.limit.map(|limit| at_least_one("--limit", limit)).transpose()?;
        let store = store.open_existing().await?;
        let (mut removed, mut more_left) = (0_usize, true);
        let bar = Bar::endless("removed");
        while more_left {
            let batch = limit.map_or(BATCH, |limit| limit.get().saturating_sub(removed).min(BATCH));
            if batch == 0 {
                break;
            }
            let swept = store.sweep(batch).await?.value;
            removed = removed.saturating_add(swept.removed);
            more_left = swept.more_left;
            bar.reached(0, removed as u64);
        }
        drop(bar);
        if self.json {
            return out::json(&json!({ "removed": removed, "more_left": more_left }));
        }
        let rest = if more_left { "there may be more: sweep again" } else { "nothing else is due" };
        out::line(&format!("Removed {} past their retention; {rest}.", counted(removed as u64, "record")))
    }
}
