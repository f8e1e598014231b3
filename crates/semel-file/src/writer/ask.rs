//! What callers ask of the writer, and what they are told.

use semel::clock::Timestamp;
use semel::record::State;
use semel::store::{Swap, SwapReply, Swaps, Swept};
use semel::{Error, Key, Result};
use tokio::sync::oneshot;

use crate::index::Entry;

/// From this size on an ask waits behind the small ones: many callers should not wait for one caller's megabytes.
const LARGE_BYTES: usize = 256 << 10;

/// What a caller asks for.
pub(crate) enum Ask {
    Swap(SwapAsk),
    Sweep(SweepAsk),
}

/// A batch of swaps, and who waits for the answer.
pub(crate) struct SwapAsk {
    pub(crate) batch: Swaps,
    pub(crate) caller: Caller<Vec<Told>>,
}

/// A sweep, and who waits for the answer.
pub(crate) struct SweepAsk {
    pub(crate) limit: usize,
    /// What was removed in turns before.
    pub(crate) removed: usize,
    pub(crate) caller: Caller<Swept>,
}

/// Who waits for an answer.
pub(crate) type Caller<T> = oneshot::Sender<Result<Answered<T>>>;

/// An answer, and the store's now that it was made at.
pub(crate) struct Answered<T> {
    pub(crate) now: Timestamp,
    pub(crate) value: T,
}

/// What became of one swap.
pub(crate) enum Told {
    /// This.
    Reply(SwapReply),
    /// It was stale, and the record of this key that won is here. The caller reads it, so that the writer need not.
    Found(Entry, Key),
}

/// Answers a caller; one that is gone needs no answer.
pub(crate) fn answer<T>(caller: Caller<T>, now: Timestamp, value: T) {
    drop(caller.send(Ok(Answered { now, value })));
}

/// Tells a caller what went wrong.
pub(crate) fn refuse<T>(caller: Caller<T>, error: Error) {
    drop(caller.send(Err(error)));
}

impl SwapAsk {
    /// Whether it has so much to write that others should go first.
    pub(crate) fn is_large(&self) -> bool {
        self.batch.iter().map(bytes_about).fold(0, usize::saturating_add) >= LARGE_BYTES
    }
}

/// About as many bytes as a swap will write: what callers bring along, without the fixed rest.
fn bytes_about(swap: &Swap) -> usize {
    let record = swap.next.unstamped();
    let outcome = match &record.state {
        State::Done(done) => done.outcome.bytes().len(),
        State::Running(_) | State::Released(_) | State::Held(_) => 0,
    };
    record.steps().iter().map(|step| step.value.len()).fold(outcome, usize::saturating_add)
}
