//! Sweepers and claimers at the same time: how long claims take meanwhile, and whether the right records are gone.
//!
//! - [`sweep_while_claiming`](sweep_while_claiming()): puts records past their keep into a store, claims without and with sweepers, and looks.
//! - `preload`: the records that are put there. `claimer`: who claims meanwhile, and for how long.
//! - [`report`](Report): what was seen.

mod claimer;
mod preload;
mod report;
mod sweep_while_claiming;

pub use report::{Latency, Report};
pub use sweep_while_claiming::sweep_while_claiming;
