//! What callers ask of the writer, and what they are answered.

use semel::clock::Timestamp;
use semel::record::State;
use semel::store::{Swap, SwapReplies, Swaps, Swept};
use semel::{Error, Key, Result};
use tokio::sync::oneshot;

use crate::index::Entry;

/// From this size on a request waits behind the small ones: many callers should not wait for one caller's megabytes.
const LARGE_BYTES: usize = 256 << 10;

pub(crate) enum WriterRequest {
    Swap(SwapRequest),
    Sweep(SweepRequest),
}

/// A batch of swaps, and the caller that waits for the answer.
pub(crate) struct SwapRequest {
    pub(crate) batch: Swaps,
    pub(crate) caller: ReplyTo<SwapAnswer>,
}

/// A sweep, and the caller that waits for the answer.
pub(crate) struct SweepRequest {
    pub(crate) limit: usize,
    /// How many records were removed in turns before.
    pub(crate) removed: usize,
    pub(crate) caller: ReplyTo<Swept>,
}

/// Takes the answer to the one who waits for it.
pub(crate) type ReplyTo<T> = oneshot::Sender<Result<Stamped<T>>>;

/// An answer, and the store's now at which it was made.
pub(crate) struct Stamped<T> {
    pub(crate) now: Timestamp,
    pub(crate) value: T,
}

/// The replies to a batch of swaps. Where a record stood in the way that has to be read first, the caller reads it, so that
/// the writer need not: those replies are `Stale(None)` until then.
#[derive(Default)]
pub(crate) struct SwapAnswer {
    pub(crate) replies: SwapReplies,
    pub(crate) unread: Vec<Unread>,
}

/// A record of this key that stood in the way of a swap.
pub(crate) struct Unread {
    /// Which reply needs it.
    pub(crate) reply: usize,
    pub(crate) entry: Entry,
    pub(crate) key: Key,
}

/// Answers a caller; one that is gone needs no answer.
pub(crate) fn answer<T>(caller: ReplyTo<T>, now: Timestamp, value: T) {
    drop(caller.send(Ok(Stamped { now, value })));
}

/// Gives a caller an error.
pub(crate) fn refuse<T>(caller: ReplyTo<T>, error: Error) {
    drop(caller.send(Err(error)));
}

impl SwapRequest {
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
