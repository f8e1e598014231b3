//! What goes over the wire, as types: the OpenAPI document is made of them.
//!
//! - [`claim`](Claim): what a caller wants, and what it is told. [`outcome`](Outcome): what its run produced.
//! - [`settle`](Complete): what is asked and told under a permit. [`batch`](Batch): many at once.

mod batch;
mod claim;
mod outcome;
mod settle;

pub(super) use batch::{Answers, Batch};
pub(super) use claim::{
    Asked, Claim, Decided, Granting, OutcomeAs, RecordOnce, RecordedOnce, Resumed, Run, WAIT_MAX,
};
pub(super) use outcome::{Outcome, Text, bytes_of, given};
pub(super) use settle::{
    Complete, Completed, Held, Hold, Release, Released, Renew, Renewed, Resume, Step, Stepped, bounded,
};
