//! Every step of a consumer, for whoever wants to see it.

use semel::Error;

use crate::event::Event;
use semel::machine::offset::Position;

/// Sees every step of a consumer, right after it happened and before the next one begins. Called in the middle of
/// everything: whoever blocks here blocks the consumer.
pub trait Watch: Send + Sync + 'static {
    /// This just happened.
    fn saw(&self, step: &Step<'_>);
}

/// Which event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<'a> {
    /// Its stream.
    pub stream: &'a str,
    /// Where in the stream.
    pub position: Option<Position>,
    /// Its key, if it has one.
    pub key: Option<&'a str>,
}

impl<'a> At<'a> {
    pub(super) fn of(event: &'a Event, key: Option<&'a str>) -> Self {
        Self { stream: &event.stream, position: event.position, key }
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Step<'a> {
    /// The source delivered an event.
    Delivered(At<'a>),
    /// Its handler succeeded; nothing is written yet.
    Effect(At<'a>),
    /// Its receipt is written.
    Receipt(At<'a>),
    /// An offset is committed.
    Offset {
        /// Of which stream.
        stream: &'a str,
        /// Up to where.
        position: Position,
    },
    /// The source knows that the event need not be delivered again.
    Acknowledged(At<'a>),
    /// The event had been processed before.
    Duplicate(At<'a>),
    /// Its handler failed, or did not end.
    Failed {
        /// Which event.
        at: At<'a>,
        /// Which attempt.
        attempt: u32,
        /// Why.
        error: &'a str,
    },
    /// The event was put aside, and counts as processed.
    DeadLetter {
        /// Which event.
        at: At<'a>,
        /// How often it was tried.
        attempts: u32,
        /// Why the last attempt failed.
        error: &'a str,
        /// Whether its receipt keeps its payload and headers, so that it can be requeued.
        is_payload_kept: bool,
    },
    /// A dead letter that was sent back is taken up here, to be processed again.
    Requeued(At<'a>),
    /// Somebody else is processing the event.
    Busy(At<'a>),
    /// Nobody may process the event before somebody has looked.
    Held(At<'a>),
    /// The event went back to the source.
    GivenBack(At<'a>),
    /// The store, the broker or the place for dead letters does not answer; everything waits and tries again.
    Waiting(&'a Error),
}
