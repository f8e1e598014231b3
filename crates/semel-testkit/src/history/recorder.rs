//! Asks a store on behalf of callers and writes down the events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use semel::clock::Timestamp;
use semel::machine::Ruling;
use semel::machine::claim::{Claimed, Recorded};
use semel::record::{Record, State};
use semel::store::Store;
use semel::{Error, ErrorKind, RecordId, Result};

use super::event::{Answer, Asked, Event, Seen, Told};
use super::model::rule;
use crate::carry::{Carried, Effect, carry};

/// Writes down what callers at the same time ask of one key and are told.
#[derive(Debug, Default)]
pub struct Recorder {
    ticks: AtomicU64,
    events: Mutex<Vec<Event>>,
}

impl Recorder {
    /// A recorder with nothing written down.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next tick of the counter that all callers share.
    pub fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    /// Writes an event down.
    pub fn write_down(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// What was written down so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the store, writes down what was asked and told, and tells the caller. A reply that was lost is written down
    /// as one.
    pub async fn ask(&self, caller: usize, store: &dyn Store, id: RecordId, asked: Asked) -> Result<Answer> {
        let invoked_at = self.tick();
        let ruled = carry(store, id, |found, now| {
            let (answer, write) = rule(&asked, found, now);
            Ruling { answer, write }
        });
        let carried = match ruled.await {
            Ok(carried) => carried,
            Err(error) => {
                self.unheard(caller, invoked_at, asked, &error);
                return Err(error);
            }
        };
        let returned_at = self.tick();
        let answer = Answer { told: carried.answer, seen: seen(&carried) };
        self.write_down(Event {
            caller,
            invoked_at,
            returned_at,
            asked,
            answer: Some(answer.clone()),
            now: Some(decided_at(&carried)),
        });
        Ok(answer)
    }

    /// An ask whose reply was lost may have taken effect, or may yet; any other error means that it never will.
    fn unheard(&self, caller: usize, invoked_at: u64, asked: Asked, error: &Error) {
        if error.kind() == ErrorKind::Unknown {
            let returned_at = self.tick();
            self.write_down(Event { caller, invoked_at, returned_at, asked, answer: None, now: None });
        }
    }
}

/// When it was decided. The first write of a record found nothing that a moment could matter for, and won because there was
/// nothing: it may as well have been decided when it was written. By the moment of its look it would seem to come before
/// a record that was made, and forgotten again, in between.
fn decided_at(carried: &Carried<Told>) -> Timestamp {
    match &carried.record {
        Some(record) if carried.effect == Effect::Written && record.first_seen_at == record.changed_at => {
            record.changed_at
        }
        Some(_) | None => carried.now,
    }
}

fn seen(carried: &Carried<Told>) -> Seen {
    let Some(record) = &carried.record else { return Seen::default() };
    let granted = matches!(carried.answer, Told::Claimed(Claimed::Run) | Told::Recorded(Recorded::Recorded));
    Seen {
        version: Some(record.version),
        written_at: (carried.effect == Effect::Written).then_some(record.changed_at),
        fence: if granted { fence(record) } else { None },
        attempt: granted.then_some(record.attempt),
        outcome: if granted { None } else { record.outcome().cloned() },
    }
}

fn fence(record: &Record) -> Option<semel::record::Version> {
    match &record.state {
        State::Running(running) => Some(running.fence),
        State::Done(done) => Some(done.fence),
        State::Released(_) | State::Held(_) => None,
    }
}
