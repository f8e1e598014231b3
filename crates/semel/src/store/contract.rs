//! The contract that every store keeps.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use smallvec::SmallVec;

use super::scan::{Page, Scan};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::key::RecordId;
use crate::record::{Draft, Keep, Record, Version};

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
    /// - A record that cannot be read is `Damaged`, and changes no other answer.
    /// - After `Swapped` the record survives whatever the store promises to survive.
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies>;

    /// The records with these ids, in their order; an error for each that cannot be read. Changes nothing.
    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>>;

    /// Removes at most `limit` records that are past their keep, and none that is not.
    fn sweep(&self, limit: usize) -> Reply<Swept>;

    /// A page of records in the order of their ids, for people and tools. Changes nothing.
    fn scan(&self, scan: Scan) -> Reply<Page>;
}

/// A batch of swaps; one alone needs no allocation.
pub type Swaps = SmallVec<[Swap; 1]>;
/// The answers to a batch of swaps.
pub type SwapReplies = SmallVec<[SwapReply; 1]>;
/// What was found under an id: the record, none, or the error of one that cannot be read.
pub type Loaded = Result<Option<Arc<Record>>>;

/// What a store's methods return: an answer that is there, or on its way. It owns what it needs, because what is in
/// flight is driven to its end even if its caller is gone.
#[must_use = "a reply that is never polled may never be sent"]
pub struct Reply<T>(Form<T>);

enum Form<T> {
    Ready(Result<Answer<T>>),
    Later(Pin<Box<dyn Future<Output = Result<Answer<T>>> + Send>>),
    Taken,
}

impl<T> Reply<T> {
    /// An answer that is there already.
    pub fn ready(answer: Result<Answer<T>>) -> Self {
        Self(Form::Ready(answer))
    }

    /// An answer that `future` will have.
    pub fn later(future: impl Future<Output = Result<Answer<T>>> + Send + 'static) -> Self {
        Self(Form::Later(Box::pin(future)))
    }
}

impl<T: Unpin> Reply<T> {
    /// The answer if the store has it at once, or the reply that must be waited for.
    pub(crate) fn try_now(mut self) -> std::result::Result<Result<Answer<T>>, Self> {
        match Pin::new(&mut self).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Ok(answer),
            Poll::Pending => Err(self),
        }
    }
}

impl<T: Unpin> Future for Reply<T> {
    type Output = Result<Answer<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match std::mem::replace(&mut self.0, Form::Taken) {
            Form::Ready(answer) => Poll::Ready(answer),
            Form::Later(mut future) => match future.as_mut().poll(context) {
                Poll::Ready(answer) => Poll::Ready(answer),
                Poll::Pending => {
                    self.0 = Form::Later(future);
                    Poll::Pending
                }
            },
            Form::Taken => Poll::Ready(Err(Error::new(
                ErrorKind::Unknown,
                "a reply was polled after its end; ask again",
            ))),
        }
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Form::Ready(_) => "Reply(ready)",
            Form::Later(_) => "Reply(later)",
            Form::Taken => "Reply(taken)",
        })
    }
}

/// A value, and the store's own time when it was read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer<T> {
    /// The store's now.
    pub now: Timestamp,
    /// What was asked for.
    pub value: T,
    /// Whether an engine may keep done records of this answer in memory.
    pub caching: Caching,
}

/// Whether an engine may keep done records of an answer in memory, and replay them without asking again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Asking again costs more, and the store's clock goes as fast as this machine's.
    Allowed,
    /// The store answers as fast as a cache would, or its clock is set by hand: ask it every time.
    Refused,
}

impl<T> Answer<T> {
    /// An answer that the store gave at `now`, and that no engine keeps.
    pub fn new(now: Timestamp, value: T) -> Self {
        Self { now, value, caching: Caching::Refused }
    }

    /// The same answer, which engines may keep if this says so.
    #[must_use]
    pub fn caching(mut self, caching: Caching) -> Self {
        self.caching = caching;
        self
    }

    /// The same answer with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        Answer { now: self.now, value: change(self.value), caching: self.caching }
    }

    /// The same answer, if it has one entry for each of `asked`. A store that answers fewer or more has left its
    /// contract: which entry answers what, and what the store did, is unknown.
    pub(crate) fn for_each_of<E>(self, asked: usize) -> Result<Self>
    where
        T: AsRef<[E]>,
    {
        let answered = self.value.as_ref().len();
        if answered == asked {
            return Ok(self);
        }
        let message = format!("the store gave {answered} answers to {asked} questions; ask again");
        Err(Error::new(ErrorKind::Unknown, message))
    }
}

impl Answer<Vec<Loaded>> {
    /// The records, or the error of the first that cannot be read.
    pub fn records(self) -> Result<Vec<Option<Record>>> {
        self.value.into_iter().map(|found| Ok(found?.map(Arc::unwrap_or_clone))).collect()
    }

    /// The record of a load of one id.
    pub fn record(self) -> Result<Option<Record>> {
        Ok(self.records()?.pop().flatten())
    }
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
    /// Nothing changed: the record that is there cannot be read, and this is why.
    Damaged(Error),
    /// Nothing changed: the store does not take this record, or no new one now, and this is why.
    Refused(Error),
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many records were removed.
    pub removed: usize,
    /// Whether there may be more past their keep: sweep again.
    pub more_left: bool,
}
