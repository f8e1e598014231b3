//! Asks a store on behalf of callers and writes down the events.

use std::fmt;
use std::mem::discriminant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use semel::clock::Timestamp;
use semel::machine::Ruling;
use semel::machine::claim::{Ask, Claimed, Recorded};
use semel::machine::settle::{Completed, ReleaseAnswer, Renewed, Resolution, Resolved};
use semel::record::{PermitId, Record, State, StateKind, Version};
use semel::store::Store;
use semel::swap_loop::{Effect, Settled};
use semel::{Error, ErrorKind, Key, Outcome, Result};

use super::model::rule;
use crate::drive::drive;

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
    pub async fn ask(&self, caller: usize, store: &dyn Store, key: &Key, asked: Asked) -> Result<Answer> {
        let invoked_at = self.tick();
        let mut ruled_at = Timestamp::default();
        let ruled = drive(store, key, |found, now| {
            ruled_at = now;
            let (answer, write) = rule(&asked, found, now);
            Ruling { answer, write }
        });
        let settled = match ruled.await {
            Ok(settled) => settled,
            Err(error) => {
                self.unheard(caller, invoked_at, asked, &error);
                return Err(error);
            }
        };
        let returned_at = self.tick();
        let answer = Answer { told: settled.answer, seen: seen(&settled) };
        self.write_down(Event {
            caller,
            invoked_at,
            returned_at,
            asked,
            answer: Some(answer.clone()),
            now: Some(decided_at(&settled, ruled_at)),
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
fn decided_at(settled: &Settled<Told>, ruled_at: Timestamp) -> Timestamp {
    match &settled.record {
        Some(record) if settled.effect == Effect::Written && record.first_seen_at == record.changed_at => {
            record.changed_at
        }
        Some(_) | None => ruled_at,
    }
}

fn seen(settled: &Settled<Told>) -> Seen {
    let Some(record) = &settled.record else { return Seen::default() };
    let granted = matches!(settled.answer, Told::Claimed(Claimed::Run) | Told::Recorded(Recorded::Recorded));
    Seen {
        version: Some(record.version),
        written_at: (settled.effect == Effect::Written).then_some(record.changed_at),
        fence: if granted { fence(record) } else { None },
        attempt: granted.then_some(record.attempt),
        outcome: if granted { None } else { record.outcome().cloned() },
    }
}

fn fence(record: &Record) -> Option<semel::record::Version> {
    match &record.state {
        State::Running(running) => Some(running.grant.fence),
        State::Done(done) => Some(done.grant.fence),
        State::Released(_) | State::Held(_) => None,
    }
}

/// What one caller asked of the key, and was told.
#[derive(Clone, Debug)]
pub struct Event {
    /// Who asked. A caller asks one thing at a time.
    pub caller: usize,
    /// When it asked, on the counter that all callers share.
    pub invoked_at: u64,
    /// When it was told; of no meaning if the reply was lost.
    pub returned_at: u64,
    /// What it asked.
    pub asked: Asked,
    /// What it was told; `None` if the reply was lost: it may have taken effect later, or never.
    pub answer: Option<Answer>,
    /// The store's now that it was decided by, if known.
    pub now: Option<Timestamp>,
}

/// What a caller can ask.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the machine documents them")]
pub enum Asked {
    Claim(Box<Ask>),
    RecordOnce(Box<Ask>, Outcome),
    Complete { permit_id: PermitId, outcome: Outcome },
    Release { permit_id: PermitId, reason: Box<str> },
    Renew { permit_id: PermitId, lease: Duration },
    Resolve { permit_id: PermitId, resolution: Resolution },
    Get,
}

/// What a caller was told, and what it saw on the way.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What it was told.
    pub told: Told,
    /// What it saw beside that.
    pub seen: Seen,
}

/// What the machine tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the machine documents them")]
pub enum Told {
    Claimed(Claimed),
    Recorded(Recorded),
    Completed(Completed),
    Released(ReleaseAnswer),
    Renewed(Renewed),
    Resolved(Resolved),
    /// The state of the record; `None` if there was no live one.
    Got(Option<StateKind>),
}

/// What a caller saw beside its answer. What is known is checked; what is not, is not.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The version of the record that was written, or else found.
    pub version: Option<Version>,
    /// When the store stamped the write.
    pub written_at: Option<Timestamp>,
    /// The fence of the run that was granted.
    pub fence: Option<Version>,
    /// The attempt that was granted.
    pub attempt: Option<u32>,
    /// The outcome that was replayed.
    pub outcome: Option<Outcome>,
}

impl Told {
    /// Whether both say the same, however long the caller is told to wait.
    pub(super) fn agrees_with(self, other: Self) -> bool {
        let same_claim = |a: Claimed, b: Claimed| discriminant(&a) == discriminant(&b);
        match (self, other) {
            (Self::Claimed(a), Self::Claimed(b))
            | (Self::Recorded(Recorded::Refused(a)), Self::Recorded(Recorded::Refused(b))) => {
                same_claim(a, b)
            }
            _ => self == other,
        }
    }
}

impl Event {
    /// Until when it must have taken effect, if it must.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.answer.as_ref().map(|_| self.returned_at)
    }

    /// What it saw.
    pub(super) fn seen(&self) -> Option<&Seen> {
        self.answer.as_ref().map(|answer| &answer.seen)
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Claim(_) => "claim",
            Self::RecordOnce(..) => "record_once",
            Self::Complete { .. } => "complete",
            Self::Release { .. } => "release",
            Self::Renew { .. } => "renew",
            Self::Resolve { .. } => "resolve",
            Self::Get => "get",
        })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "caller {} at {} asked {}", self.caller, self.invoked_at, self.asked)?;
        match &self.answer {
            Some(answer) => write!(f, " and was told {:?} at {}", answer.told, self.returned_at)?,
            None => f.write_str(" and never heard")?,
        }
        match self.seen().and_then(|seen| seen.version) {
            Some(version) => write!(f, " (version {})", version.get()),
            None => Ok(()),
        }
    }
}
