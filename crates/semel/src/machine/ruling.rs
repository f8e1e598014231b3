//! What the machine hands out: an answer, and what to write before it may be given.

use crate::clock::Timestamp;
use crate::record::{Draft, Keep, Record};

/// An answer, and what must be swapped in before anyone may be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling<A> {
    /// What the caller is told.
    pub answer: A,
    /// What to write first; `None` if the record stays as it is.
    pub write: Option<Write>,
}

/// The next record, and how long the store must keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// What the record becomes.
    pub next: Draft,
    /// How long, from the store's now, it must be kept.
    pub keep: Keep,
}

impl<A> Ruling<A> {
    pub(super) fn unchanged(answer: A) -> Self {
        Self { answer, write: None }
    }

    /// Small enough to be inlined: the record is then built where it stays, instead of being moved there.
    #[inline]
    pub(super) fn write(answer: A, next: Record, now: Timestamp) -> Self {
        Self::write_draft(answer, Draft::new(next), now)
    }

    fn write_draft(answer: A, next: Draft, now: Timestamp) -> Self {
        let keep = next.keep(now);
        Self { answer, write: Some(Write { next, keep }) }
    }
}

/// What was found, if it still counts: a record past its time and no record are the same.
pub(super) fn live(found: Option<&Record>, now: Timestamp) -> Option<&Record> {
    found.filter(|record| record.is_live(now))
}
