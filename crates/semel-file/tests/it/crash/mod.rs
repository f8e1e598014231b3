//! Power cuts: at every operation, with any part of what was not synced, and during recovery.
//!
//! - `workload`: what callers do; `ledger`: what they were told, and when.
//! - `expected`: what must be found after a cut, and the check that it is.
//! - `recorded`: the runs that are cut; `prefixes`, `subsets`, `first_run`, `recovery`: the cuts.

mod expected;
mod first_run;
mod ledger;
mod prefixes;
mod recorded;
mod recovery;
mod subsets;
mod workload;

pub(crate) use expected::Expected;
pub(crate) use recorded::{KEYS, open, survives};
pub(crate) use workload::Workload;
