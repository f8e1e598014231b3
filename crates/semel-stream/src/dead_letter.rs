//! What becomes of events that cannot be processed.

use std::sync::Arc;

use crate::event::Event;
use crate::source::Pending;

/// An event that is put aside, so that those behind it can go on.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// The event.
    pub event: Arc<Event>,
    /// Its key, if it has one.
    pub key: Option<Box<str>>,
    /// How often it was tried; 0 if it never was.
    pub attempts: u32,
    /// Why the last attempt failed, or why there was none.
    pub error: String,
}

/// Where events go that cannot be processed.
///
/// A letter is handed over before its receipt is written, so one that was handed over while its consumer died is handed
/// over again: a place that must not have it twice keeps it by its key.
pub trait DeadLetters: Send + Sync + 'static {
    /// Puts an event aside. It counts as processed once this has succeeded; after an error it is tried again.
    fn put_aside(&self, letter: DeadLetter) -> Pending<'_, ()>;
}

impl<D: DeadLetters + ?Sized> DeadLetters for Arc<D> {
    fn put_aside(&self, letter: DeadLetter) -> Pending<'_, ()> {
        (**self).put_aside(letter)
    }
}

/// The place that is used unless another is named: a log line.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoggedDeadLetters;

impl DeadLetters for LoggedDeadLetters {
    fn put_aside(&self, letter: DeadLetter) -> Pending<'_, ()> {
        // The loop logs every letter by itself, with the digest of its key.
        drop(letter);
        Box::pin(std::future::ready(Ok(())))
    }
}
