//! From when a record's lease or retention counts, when nobody saw the stamp.
//!
//! Such a term began somewhere between two moments. Instead of guessing, the model keeps both: the record holds the
//! earliest, and every answer that depends on the term narrows what it can have been.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::{Record, State};

/// A record, and how late its term may have begun.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    pub(super) record: Record,
    began_until: Timestamp,
}

impl Term {
    /// A record whose term began where the record says, or up to `until`.
    pub(super) fn new(record: Record, until: Timestamp) -> Self {
        Self { record, began_until: until }
    }

    /// This record with another one's term.
    pub(super) fn carried_over(&self, record: Record) -> Self {
        Self { record, began_until: self.began_until }
    }

    pub(super) fn began_until(&self) -> Timestamp {
        self.began_until
    }

    /// The ways in which a decision at `now` may find it: as early as it can be, or just so late that a deadline
    /// has not passed.
    pub(super) fn readings(&self, now: Timestamp) -> Vec<Self> {
        let mut readings = vec![self.clone()];
        let Some(began) = began(&self.record) else { return readings };
        for span in self.spans() {
            let later = Timestamp::from_micros(back(now, span).as_micros().saturating_add(1));
            if began < later && later <= self.began_until {
                let mut record = self.record.clone();
                begin(&mut record, later);
                readings.push(Self { record, began_until: self.began_until });
            }
        }
        readings
    }

    /// What remains possible after a decision at `now` found the record, and maybe a deadline passed.
    pub(super) fn narrow(&mut self, now: Timestamp) {
        let Some(began) = began(&self.record) else { return };
        self.began_until = self.began_until.min(now).max(began);
        for span in self.spans() {
            if began.plus(span) <= now {
                self.began_until = self.began_until.min(back(now, span)).max(began);
            }
        }
    }

    /// From when on the machine would judge the record otherwise, at the earliest.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = Timestamp> {
        let began = began(&self.record).unwrap_or_default();
        self.spans().into_iter().map(move |span| began.plus(span))
    }

    fn spans(&self) -> Vec<Duration> {
        let began = began(&self.record).unwrap_or_default();
        let lease = match &self.record.state {
            State::Running(running) => Some(running.lease),
            State::Done(_) | State::Released(_) | State::Held(_) => None,
        };
        lease.into_iter().chain(self.record.live_until().map(|until| until.since(began))).collect()
    }
}

/// Whether a store fills in where the record's term begins.
pub(super) fn is_open(record: &Record) -> bool {
    began(record).is_none_or(|began| began == Timestamp::default())
}

fn began(record: &Record) -> Option<Timestamp> {
    match &record.state {
        State::Running(running) => Some(running.leased_at),
        State::Done(done) => Some(done.settled_at),
        State::Released(released) => Some(released.settled_at),
        State::Held(_) => None,
    }
}

fn begin(record: &mut Record, at: Timestamp) {
    match &mut record.state {
        State::Running(running) => running.leased_at = at,
        State::Done(done) => done.settled_at = at,
        State::Released(released) => released.settled_at = at,
        State::Held(_) => {}
    }
}

fn back(moment: Timestamp, span: Duration) -> Timestamp {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(moment.as_micros().saturating_sub(micros))
}
