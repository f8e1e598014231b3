//! The shortest way from the machine to a store: load, rule, swap, again while stale.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::machine::Ruling;
use semel::record::Record;
use semel::store::{Store, Swap, SwapReply};
use semel::{Error, ErrorKind, RecordId, Result};

/// How often a ruling is made anew before the store is taken for one that never lets anybody win.
const TRIES_MAX: usize = 10_000;

/// What a caller is told, and what it was decided on.
#[derive(Clone, Debug)]
pub struct Carried<A> {
    /// What the machine ruled.
    pub answer: A,
    /// The store's now that it ruled by.
    pub now: Timestamp,
    /// The record as it was written; or, if nothing had to be written, as it was found.
    pub record: Option<Record>,
    /// Whether the ruling changed the record.
    pub effect: Effect,
}

/// Whether a ruling changed the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was swapped in.
    Written,
    /// The record stayed as it was.
    Unchanged,
}

/// Rules on what the store holds and carries the ruling there, until no other caller came between.
pub async fn carry<A>(
    store: &dyn Store,
    id: RecordId,
    rule: impl Fn(Option<&Record>, Timestamp) -> Ruling<A>,
) -> Result<Carried<A>> {
    let loaded = store.load(vec![id]).await?;
    let mut now = loaded.now;
    let mut found = loaded.value.into_iter().next().flatten();
    for _ in 0..TRIES_MAX {
        let Ruling { answer, write } = rule(found.as_ref(), now);
        let Some(write) = write else {
            return Ok(Carried { answer, now, record: found, effect: Effect::Unchanged });
        };
        let expected = found.as_ref().map(|record| record.version);
        let swapped = store.swap([Swap { expected, next: write.next, keep: write.keep }].into()).await?;
        match swapped.value.into_iter().next() {
            Some(SwapReply::Swapped(record)) => {
                return Ok(Carried {
                    answer,
                    now,
                    record: Some(Arc::unwrap_or_clone(record)),
                    effect: Effect::Written,
                });
            }
            Some(SwapReply::Stale(current)) => {
                (found, now) = (current.map(Arc::unwrap_or_clone), swapped.now);
            }
            Some(SwapReply::Full) => return Err(Error::new(ErrorKind::Full, "the store is at its bound")),
            None => return Err(Error::new(ErrorKind::Unknown, "the store gave no answer to a swap")),
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "every swap was stale: the store lets nobody win"))
}
