//! How one event is processed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use semel::{Claim, Fingerprint, Key, OnOutage, Outcome, Permit, Result};

use super::claiming::claimed;
use super::tools::Tools;
use super::watch::{At, Step};
use crate::dead_letter::DeadLetter;
use crate::event::Event;
use crate::failure::Failure;
use crate::offset::Reader;
use crate::pipeline::Pipeline;

/// How one event is processed: claim, handler, receipt. [`Consumer::run`](super::Consumer::run) brings its own;
/// another one may write receipt, offset and effect in one transaction.
///
/// An error means that nobody knows what became of the event, and it is tried again: after a while if the store did not
/// answer or the permit was lost. After an error of any other kind the consumer stops.
pub trait Work: Send + Sync + 'static {
    /// Processes one event, once.
    fn work<'a>(&'a self, task: Task<'a>) -> Pin<Box<dyn Future<Output = Result<Worked>> + Send + 'a>>;
}

/// One event to process.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// In which pipeline.
    pub pipeline: &'a Pipeline,
    /// The event.
    pub event: &'a Arc<Event>,
    /// Its key; its place where it has none.
    pub key: &'a str,
    /// Whether the event has no key, and is processed as often as it is delivered.
    pub is_unprotected: bool,
    /// Whether the event has a key.
    pub has_key: bool,
    /// Under which key the run is recorded: that of its receipt, or of a requeue.
    pub(super) record: Option<&'a Key>,
    /// Whose offset may move together with this event: everything before it has a receipt. `None` where the stream is
    /// shared, or something before it is still running.
    pub reader: Option<&'a Reader>,
    /// After how many attempts the event is put aside.
    pub attempts_max: u32,
    /// How often this consumer has seen it fail already.
    pub failures: u32,
    /// What its payload looks like, if payloads are compared.
    pub fingerprint: Option<Fingerprint>,
    pub(super) tools: &'a Tools,
}

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Worked {
    /// It was processed, and its receipt is written.
    Ran {
        /// Which attempt it was.
        attempt: u32,
    },
    /// It was processed, and its receipt and the offset of its stream are written.
    OffsetToo {
        /// Which attempt it was.
        attempt: u32,
    },
    /// It had been processed before.
    Duplicate,
    /// Somebody else is processing it, and has this long until its lease lapses.
    Busy(Duration),
    /// Nobody may process it before somebody has looked: why.
    Held(String),
    /// Another payload was processed under its key.
    Mismatch,
    /// Its handler failed; its record is released.
    Failed {
        /// Which attempt it was.
        attempt: u32,
        /// Why.
        failure: Failure,
    },
    /// It was put aside, and its receipt says so.
    PutAside {
        /// How often it was tried.
        attempts: u32,
        /// Why the last attempt failed.
        error: String,
    },
    /// Its effect was refused together with the offset: somebody else reads the stream now.
    Fenced,
}

impl Task<'_> {
    /// The claim of this event. A store that does not answer refuses it, whatever the engine's policy, and so many
    /// attempts that it is held there are not: the consumer puts it aside.
    pub fn claim(&self) -> Result<Claim> {
        let claim = match self.record {
            Some(record) => self.pipeline.claim_at(record, self.key),
            None => self.pipeline.claim_of(self.key)?,
        };
        let claim = claim.on_outage(OnOutage::Closed).attempts_max(u32::MAX);
        Ok(match self.fingerprint {
            Some(fingerprint) => claim.fingerprint(fingerprint),
            None => claim,
        })
    }

    /// Claims the event and calls `run` with this task, the permit and the attempt, which starts at 1. Where the event
    /// cannot be claimed, `run` is not called, and the answer says why.
    ///
    /// `run` writes the receipt. If it answers with a [`Failure`] instead, the record is released, or after the last
    /// attempt the event goes to the dead letters.
    pub async fn run_claimed<F>(self, run: F) -> Result<Worked>
    where
        F: AsyncFnOnce(&Task<'_>, &Permit, u32) -> Result<std::result::Result<Worked, Failure>>,
    {
        claimed(self, run).await
    }

    /// The handler succeeded: to be said before its receipt is written.
    pub fn saw_effect(&self) {
        self.tools.saw(&Step::Effect(self.at()));
    }

    /// Whether an attempt that failed so was the last.
    pub fn is_last(&self, attempt: u32, failure: &Failure) -> bool {
        match failure {
            Failure::Dead(_) => true,
            Failure::Retry(_) => attempt >= self.attempts_max,
            Failure::Stop(_) => false,
        }
    }

    /// Hands the event to the dead letters. Its receipt is still to be written, with
    /// [`dead_letter`](Self::dead_letter).
    pub async fn put_aside(&self, attempts: u32, error: &str) -> Result<()> {
        self.tools.put_aside(self.letter(attempts, error)).await
    }

    /// The receipt of the event as a dead letter, with its payload as far as that is kept.
    pub fn dead_letter(&self, attempts: u32, error: &str) -> Outcome {
        self.letter(attempts, error).outcome(self.tools.dead_letter_bytes_max)
    }

    fn letter(&self, attempts: u32, error: &str) -> DeadLetter {
        let key = self.has_key.then(|| self.key.into());
        DeadLetter { event: Arc::clone(self.event), key, attempts, error: error.to_owned() }
    }

    /// How many events are still before this consumer, as far as its source last said.
    pub fn known_lag(&self) -> Option<u64> {
        self.tools.tally.known_lag()
    }

    /// Which event this is.
    pub fn at(&self) -> At<'_> {
        At::of(self.event, self.has_key.then_some(self.key))
    }
}
