//! What operators do to records that are not theirs, written down before and after.
//!
//! - [`supplied`](Settlement): what a held record is settled with, and whether a retry could get it.
//! - [`audit`](Audit): the log of actions. [`action`](Operator): one action on one record.
//! - [`many`](act_on_all): the same action on every record of a selection.
//! - [`pipeline`](EventNoted): events noted as processed, and offsets that are moved.
//! - `requeue`: dead letters that are sent back.

mod action;
mod audit;
mod many;
mod pipeline;
mod requeue;
mod supplied;

pub use action::Operator;
pub use audit::{Action, Audit, Entry, Noted};
pub use many::{Many, act_on_all};
pub use pipeline::{EventNoted, OffsetMoved};
pub use supplied::{Settlement, SuppliedResponse};
