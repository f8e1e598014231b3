//! `semel bench`.

use std::time::Duration;

use super::place::Place;
use super::refused::{Meaning, at_least_one, refused};
use crate::bench::{Plan, Report};

/// The most keys that one measurement may ask for: beyond it, memory is what is measured.
const KEYS_MAX: usize = 50_000_000;

#[derive(Debug, clap::Args)]
pub(super) struct TypedBench {
    /// How many keys to claim and complete
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    keys: usize,
    /// How long to replay them
    #[arg(long, value_name = "S", default_value_t = 3.0)]
    seconds: f64,
    /// How many callers ask at the same time
    #[arg(long, value_name = "N", default_value_t = 16)]
    callers: usize,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

impl TypedBench {
    pub(super) fn meaning(self, place: &Place) -> Meaning<Plan> {
        let store = place.store_to_fill()?;
        let keys = at_least_one("--keys", self.keys)?;
        if keys.get() > KEYS_MAX {
            return Err(refused(&format!("--keys is {keys}; {KEYS_MAX} at most")));
        }
        let replays_for = Duration::try_from_secs_f64(self.seconds)
            .ok()
            .filter(|span| *span <= Duration::from_hours(1))
            .ok_or_else(|| refused("--seconds takes a number from 0 to 3600, such as 0.5"))?;
        let callers = at_least_one("--callers", self.callers)?;
        let report = if self.json { Report::Json } else { Report::Table };
        Ok(Plan { store, keys, replays_for, callers, report })
    }
}
