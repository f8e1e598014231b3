//! `semel demo`.

use super::refused::{Meaning, at_least_one, refused};
use crate::demo::Demo;

/// More would take longer than anybody looks.
const REQUESTS_MAX: usize = 100_000;

#[derive(Debug, clap::Args)]
pub(super) struct TypedDemo {
    /// How many payments
    #[arg(long, value_name = "N", default_value_t = 100)]
    requests: usize,
    /// Which story: the same number has the same mishaps
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Leave everything up, with the lines to try by hand, until Ctrl-C
    #[arg(long)]
    keep: bool,
}

impl TypedDemo {
    pub(super) fn meaning(self) -> Meaning<Demo> {
        let payments = at_least_one("--requests", self.requests)?;
        if payments.get() > REQUESTS_MAX {
            return Err(refused(&format!("--requests is {payments}; {REQUESTS_MAX} at most")));
        }
        Ok(Demo { payments, seed: self.seed, keep: self.keep })
    }
}
