//! Many events at once, in a handful of round trips.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use futures_util::future::join_all;
use semel::{Decision, Permit, Result};

use crate::event::Event;
use crate::failure::{Failure, Handled};
use crate::key::{EventKey, KeyFault};
use crate::pipeline::Pipeline;

/// What became of one event of a batch.
#[derive(Debug)]
pub enum Seen {
    /// It was processed, now.
    Ran {
        /// Which attempt it was.
        attempt: u32,
    },
    /// It had been processed before.
    Duplicate,
    /// Somebody else is processing it: it has no receipt yet.
    Busy,
    /// Nobody may process it before somebody has looked.
    Held,
    /// Its handler failed; it was released.
    Failed(Failure),
    /// It has no key, and nothing was done.
    NoKey(KeyFault),
    /// Its state is unknown: the store did not answer, or its record cannot be read.
    Unknown(semel::Error),
}

/// What became of a batch.
#[derive(Debug, Default)]
pub struct Processed {
    /// One for each event, in their order.
    pub events: Vec<Seen>,
}

impl Processed {
    /// How many were processed now.
    pub fn ran(&self) -> usize {
        self.count(|seen| matches!(seen, Seen::Ran { .. }))
    }

    /// How many had been processed before.
    pub fn duplicates(&self) -> usize {
        self.count(|seen| matches!(seen, Seen::Duplicate))
    }

    /// How many have a receipt.
    pub fn receipts(&self) -> usize {
        self.ran().saturating_add(self.duplicates())
    }

    /// How many of the first events have receipts without a gap: an offset may be committed up to there.
    pub fn contiguous(&self) -> usize {
        let has_receipt = |seen: &&Seen| matches!(seen, Seen::Ran { .. } | Seen::Duplicate);
        self.events.iter().take_while(has_receipt).count()
    }

    fn count(&self, is: impl Fn(&Seen) -> bool) -> usize {
        self.events.iter().filter(|seen| is(seen)).count()
    }
}

impl Pipeline {
    /// Processes a batch: those that have a receipt are passed over, the handler runs for the others, all at once, and what
    /// it says becomes their receipts. However many they are, they share a handful of round trips.
    ///
    /// The offset is yours to commit: [`contiguous`](Processed::contiguous) says how far.
    pub async fn process<'a, F, Fut>(
        &self,
        events: &'a [Event],
        key: &EventKey,
        handler: F,
    ) -> Result<Processed>
    where
        F: Fn(&'a Event, Permit) -> Fut,
        Fut: Future<Output = Handled>,
    {
        let keys: Vec<_> = events.iter().map(|event| key.of(event)).collect();
        let known: Vec<_> = keys.iter().filter_map(|key| key.as_ref().ok()).collect();
        // A look costs less than a claim that turns out to be a duplicate's. It pays where there is more than one.
        let mut unseen = match known.len() {
            0 | 1 => known.iter().map(|_| Ok(true)).collect(),
            _ => self.unseen(&known).await?,
        }
        .into_iter();
        let each = events.iter().zip(&keys).map(|(event, key)| {
            let is_unseen = key.as_ref().ok().and_then(|_| unseen.next()).unwrap_or(Ok(true));
            let handler = &handler;
            async move {
                match (key, is_unseen) {
                    (Err(fault), _) => Seen::NoKey(fault.clone()),
                    (Ok(_), Err(error)) => Seen::Unknown(error),
                    (Ok(_), Ok(false)) => Seen::Duplicate,
                    (Ok(key), Ok(true)) => {
                        self.process_one(event, key, handler).await.unwrap_or_else(Seen::Unknown)
                    }
                }
            }
        });
        Ok(Processed { events: join_all(each).await })
    }

    async fn process_one<'a, F, Fut>(&self, event: &'a Event, key: &str, handler: &F) -> Result<Seen>
    where
        F: Fn(&'a Event, Permit) -> Fut,
        Fut: Future<Output = Handled>,
    {
        let permit = match self.claim(key).await? {
            Decision::Run(permit) | Decision::Unprotected(permit) => permit,
            Decision::Replay(_) => return Ok(Seen::Duplicate),
            Decision::Busy(_) => return Ok(Seen::Busy),
            Decision::Held(_) | Decision::Mismatch(_) => return Ok(Seen::Held),
        };
        let attempt = permit.attempt();
        match with_heartbeat(&permit, handler(event, permit.clone())).await {
            Ok(outcome) => {
                permit.complete(outcome).await?;
                Ok(Seen::Ran { attempt })
            }
            Err(failure) => {
                permit.release(failure.reason()).await?;
                Ok(Seen::Failed(failure))
            }
        }
    }
}

/// Awaits `work`, and renews the lease of its permit for as long as it takes.
pub async fn with_heartbeat<T>(permit: &Permit, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    // Work that is done at once needs no heartbeat.
    let first = std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    match first {
        Poll::Ready(ended) => ended,
        Poll::Pending => {
            let _heartbeat = permit.heartbeat();
            work.await
        }
    }
}
