//! The loop over a source: each event processed once, and the offset never past an event without a receipt.
//!
//! - `builder`: a [`Consumer`] and its choices, which `choices`, `checkpoint` and `backoff` define.
//! - `work`: how one event is processed; `claiming`: by claim, handler and receipt, as nearly all are.
//! - `running`: the loop. It waits for nothing alone: `desk` talks to the source, `intake` takes deliveries in, `jobs`
//!   keeps them in their order, `attempt` runs one, `settle` draws the consequences, `commits` moves the
//!   offsets of `streams`.
//! - `frontier`: up to where everything is done. `requeues`: dead letters that were sent back.
//! - `control`: how a consumer is stopped; `report`, `watch`: what can be seen of it.

mod attempt;
mod backoff;
mod builder;
mod checkpoint;
mod choices;
mod claiming;
mod commits;
mod control;
mod desk;
mod frontier;
mod intake;
mod jobs;
mod report;
mod requeues;
mod running;
mod settle;
mod streams;
mod tools;
mod watch;
mod work;

pub use backoff::Backoff;
pub use builder::Consumer;
pub use checkpoint::Checkpoint;
pub use choices::{OnBusy, OnHeld, Order};
pub use control::Stopper;
pub use report::Report;
pub use watch::{At, Step, Watch};
pub use work::{Task, Work, Worked};
