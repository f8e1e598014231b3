//! The note that an event was processed.

use semel::clock::Timestamp;
use semel::record::{Record, State};
use semel::{Outcome, OutcomeKind};
use serde_json::json;

/// The kind of an outcome that is a dead letter.
pub const DEAD_LETTER_KIND: &str = "dead_letter";

/// The note that an event was processed: a completed record of one event in one pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Which event.
    pub event: Box<str>,
    /// When it was processed, on the store's clock.
    pub at: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// What the handler said.
    pub outcome: Outcome,
    /// How often a claim found it done; a few seconds late. A duplicate that was found by a look is not counted here: that would
    /// cost a write.
    pub duplicates: u64,
}

impl Receipt {
    /// The receipt in a record, if the event was processed.
    pub fn read(record: &Record) -> Option<Self> {
        let State::Done(done) = &record.state else { return None };
        Some(Self {
            event: record.key.name().into(),
            at: done.settled_at,
            attempts: record.attempt,
            outcome: done.outcome.clone(),
            duplicates: record.duplicates.count,
        })
    }

    /// Whether the event could not be processed and was put aside.
    pub fn is_dead_letter(&self) -> bool {
        self.outcome.kind().as_str() == DEAD_LETTER_KIND
    }
}

/// The outcome of an event that was put aside after so many attempts, the last of which failed with this error, without the
/// event itself: it cannot be requeued. [`DeadLetter::outcome`](crate::DeadLetter::outcome) keeps the event, too.
pub fn dead_letter(attempts: u32, error: &str) -> Outcome {
    Outcome::new(OutcomeKind::from_word(DEAD_LETTER_KIND), "")
        .details(&json!({ "attempts": attempts, "error": error }))
}
