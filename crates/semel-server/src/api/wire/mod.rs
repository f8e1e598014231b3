//! What goes over the wire, as types: the OpenAPI document is made of them.
//!
//! - [`text`](Text): text that is read without a copy. [`claim`](Claim): what a caller wants. [`outcome`](Outcome): what
//!   its run produced. [`settle`](Complete): what is asked under a permit.
//! - [`decision`](Decided): what a claim is told. [`ended`](Completed): what is told under a permit. [`batch`](Batch): many at once.

mod batch;
mod claim;
mod decision;
mod ended;
mod outcome;
mod settle;
mod text;

pub(super) use batch::{Answers, Batch};
pub(super) use claim::{Asked, Claim, OutcomeAs, RecordOnce, WAIT_MAX};
pub(super) use decision::{Decided, Granting, RecordedOnce, Resumed, Run};
pub(super) use ended::{Completed, Held, Released, Renewed, Stepped};
pub(super) use outcome::Outcome;
pub(super) use settle::{Complete, Hold, Release, Renew, Resume, Step, bounded};
pub(super) use text::Text;
