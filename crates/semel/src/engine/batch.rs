//! Swaps of many callers in one round trip. No timers: a batch leaves when the one before it is back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use tokio::sync::oneshot;

use super::driven::{poll_now, spawn_if_possible};
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;
use crate::store::{Answer, Reply, Store, Swap, SwapReply};

/// How many swaps ride together at most.
const BATCH_SWAPS_MAX: usize = 1_024;
/// How many batches are on their way at once before callers queue up.
const IN_FLIGHT_MAX: usize = 2;

pub(super) struct Batcher {
    store: Arc<dyn Store>,
    queue: Mutex<VecDeque<Waiting>>,
    /// Changed only under the queue's lock; read without it by callers who hope to find the way free.
    in_flight: AtomicUsize,
}

struct Waiting {
    swap: Swap,
    told: oneshot::Sender<Result<Told>>,
}

/// What the store said to one swap.
pub(super) struct Told {
    pub(super) answer: Answer<SwapReply>,
    pub(super) cost: Cost,
}

/// Whether an answer had to be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// The store answered at once.
    Nothing,
    /// There was a round trip.
    RoundTrip,
}

/// A swap on its way.
pub(super) enum Sent {
    /// By itself, and perhaps answered already.
    Alone(Reply<Vec<SwapReply>>),
    /// By itself, and not answered at once. Only now it counts as in flight: a store in this process answers at
    /// once, and its callers never queue behind one another.
    InFlight(Reply<Vec<SwapReply>>, Turn),
    /// With the next batch.
    Queued(oneshot::Receiver<Result<Told>>),
}

impl Sent {
    /// What the store says at once, or the swap that is still on its way.
    pub(super) fn poll_now(self, batcher: &Arc<Batcher>) -> std::result::Result<Result<Told>, Self> {
        match self {
            Self::Alone(mut reply) => match poll_now(reply.as_mut()) {
                Poll::Ready(answer) => Ok(only(answer, Cost::Nothing)),
                // Counted before anybody else can ask: the next callers must find it in flight.
                Poll::Pending => Err(Self::InFlight(reply, Turn::start(batcher))),
            },
            waiting @ (Self::InFlight(..) | Self::Queued(_)) => Err(waiting),
        }
    }

    pub(super) async fn told(self, batcher: &Arc<Batcher>) -> Result<Told> {
        let (reply, turn) = match self {
            Self::Alone(reply) => (reply, Turn::start(batcher)),
            Self::InFlight(reply, turn) => (reply, turn),
            Self::Queued(told) => return told.await.unwrap_or_else(|_| Err(reply_lost())),
        };
        let answer = only(reply.await, Cost::RoundTrip);
        drop(turn);
        answer
    }
}

impl Batcher {
    pub(super) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, queue: Mutex::default(), in_flight: AtomicUsize::new(0) })
    }

    /// Sends a swap by itself if the way is free, and with the next batch if it is not.
    pub(super) fn send(&self, swap: Swap) -> Sent {
        if self.in_flight.load(Ordering::Acquire) < IN_FLIGHT_MAX {
            return Sent::Alone(self.store.swap(vec![swap]));
        }
        match self.enqueue(swap) {
            Ok(told) => Sent::Queued(told),
            Err(swap) => Sent::Alone(self.store.swap(vec![swap])),
        }
    }

    /// Queues behind the batches in flight, or hands the swap back if they have landed meanwhile: then nobody
    /// would come back to fetch it.
    fn enqueue(&self, swap: Swap) -> std::result::Result<oneshot::Receiver<Result<Told>>, Swap> {
        let mut queue = lock(&self.queue);
        if self.in_flight.load(Ordering::Acquire) < IN_FLIGHT_MAX {
            return Err(swap);
        }
        let (told, receiver) = oneshot::channel();
        queue.push_back(Waiting { swap, told });
        Ok(receiver)
    }

    async fn send_batch(&self, batch: Vec<Waiting>) {
        let (swaps, callers): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|waiting| (waiting.swap, waiting.told)).unzip();
        let answer = self.store.swap(swaps).await.and_then(|answer| complete_answer(answer, callers.len()));
        match answer {
            Ok(Answer { now, value }) => {
                for (caller, reply) in callers.into_iter().zip(value) {
                    let told = Told { answer: Answer { now, value: reply }, cost: Cost::RoundTrip };
                    drop(caller.send(Ok(told)));
                }
            }
            Err(error) => {
                for caller in callers {
                    drop(caller.send(Err(error.duplicate())));
                }
            }
        }
    }
}

/// One batch in flight. When it is over, its place goes to whatever queued up behind it.
pub(super) struct Turn {
    batcher: Arc<Batcher>,
    counts: Counts,
}

#[derive(PartialEq)]
enum Counts {
    InFlight,
    NoMore,
}

impl Turn {
    fn start(batcher: &Arc<Batcher>) -> Self {
        let _queue = lock(&batcher.queue);
        batcher.in_flight.fetch_add(1, Ordering::AcqRel);
        Self { batcher: Arc::clone(batcher), counts: Counts::InFlight }
    }

    /// What queued up meanwhile; if nothing did, this turn is over.
    fn next_batch(&mut self) -> Option<Vec<Waiting>> {
        let mut queue = lock(&self.batcher.queue);
        if queue.is_empty() {
            self.batcher.in_flight.fetch_sub(1, Ordering::AcqRel);
            self.counts = Counts::NoMore;
            return None;
        }
        let ride = queue.len().min(BATCH_SWAPS_MAX);
        Some(queue.drain(..ride).collect())
    }

    async fn lead(mut self, first: Vec<Waiting>) {
        let mut next = Some(first);
        while let Some(batch) = next {
            self.batcher.send_batch(batch).await;
            next = self.next_batch();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.counts == Counts::InFlight
            && let Some(batch) = self.next_batch()
        {
            let batcher = Arc::clone(&self.batcher);
            // The place is handed over, not given up: it still counts.
            spawn_if_possible(Self { batcher, counts: Counts::InFlight }.lead(batch));
        }
    }
}

fn only(answer: Result<Answer<Vec<SwapReply>>>, cost: Cost) -> Result<Told> {
    let Answer { now, mut value } = complete_answer(answer?, 1)?;
    let value = value.pop().ok_or_else(reply_lost)?;
    Ok(Told { answer: Answer { now, value }, cost })
}

/// A store that answers fewer or more than it was asked has left its contract: nobody knows what it did.
fn complete_answer(answer: Answer<Vec<SwapReply>>, asked: usize) -> Result<Answer<Vec<SwapReply>>> {
    if answer.value.len() == asked {
        return Ok(answer);
    }
    let message = format!("the store answered {} of {asked} swaps; ask again", answer.value.len());
    Err(Error::new(ErrorKind::Unknown, message))
}

fn reply_lost() -> Error {
    Error::new(ErrorKind::Unknown, "the store's reply was lost; ask again")
}
