//! The contract that every store keeps.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::scan::{Page, Scan};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::key::RecordId;
use crate::record::{Draft, Keep, Record, Version};

/// What a store's methods return: an answer that is on its way. It owns what it needs, because what is in flight is
/// driven to its end even if whoever asked is gone.
pub type Reply<T> = Pin<Box<dyn Future<Output = Result<Answer<T>>> + Send>>;

/// Where records live.
///
/// Every answer carries the store's own `now`, on a clock that never runs backwards: leases and retention
/// are judged on it alone. An error of kind `Unavailable` means that nothing happened; if that is not
/// certain, the kind is `Unknown`.
pub trait Store: Send + Sync + 'static {
    /// Replaces each record only if it is still at its expected version.
    ///
    /// - One answer for each swap, in their order. Each is atomic, and none undoes another; of two swaps of one
    ///   record in a batch at most one wins.
    /// - The stored record is the draft, [stamped](Draft::stamp) with the store's now and a version greater than
    ///   any that this key ever had, also if its record was swept in between.
    /// - `Stale` changed nothing, and hands back the record that won.
    /// - After `Swapped` the record survives whatever the store promises to survive.
    fn swap(&self, batch: Vec<Swap>) -> Reply<Vec<SwapReply>>;

    /// The records with these ids, in their order. Changes nothing.
    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Option<Record>>>;

    /// Removes at most `limit` records that are past their keep, and none that is not.
    fn sweep(&self, limit: usize) -> Reply<Swept>;

    /// A page of records in the order of their ids, for people and tools. Changes nothing.
    fn scan(&self, scan: Scan) -> Reply<Page>;
}

/// A value, and the store's own time when it was read.
#[derive(Clone, Debug)]
pub struct Answer<T> {
    /// The store's now.
    pub now: Timestamp,
    /// What was asked for.
    pub value: T,
}

/// One conditional replacement.
#[derive(Clone, Debug)]
pub struct Swap {
    /// The version that the record must still be at; `None`: there must be none.
    pub expected: Option<Version>,
    /// What it becomes.
    pub next: Draft,
    /// How long, from the store's now, it must be kept.
    pub keep: Keep,
}

impl Swap {
    /// The record that this is about.
    pub fn id(&self) -> RecordId {
        self.next.key().id()
    }
}

/// What became of one swap.
#[derive(Clone, Debug)]
pub enum SwapReply {
    /// The record as it is now stored.
    Swapped(Arc<Record>),
    /// Nothing changed: this record, or none, was found instead of the expected one.
    Stale(Option<Arc<Record>>),
    /// Nothing changed: the store is at its bound and takes no new record. Never the answer to a swap
    /// of a record that is there.
    Full,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many records were removed.
    pub removed: usize,
    /// Whether there may be more past their keep: sweep again.
    pub more_left: bool,
}
