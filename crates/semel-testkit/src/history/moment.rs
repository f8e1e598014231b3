//! When an event may have been decided and stamped, as far as that is known.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::{Record, State};

use super::model::Model;
use super::recorder::Event;

/// When an event was decided, and between when and when the store stamped what it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) now: Timestamp,
    pub(super) stamped_from: Timestamp,
    pub(super) stamped_until: Timestamp,
}

/// What the moments that somebody saw say about those that nobody did: the store's clock never runs backwards.
pub(super) struct Moments {
    /// For each event, the last moment seen by an event that had ended before it began.
    earliest: Vec<Timestamp>,
    /// For each event, the first moment seen by an event that began after it had ended.
    latest: Vec<Timestamp>,
}

const START: Timestamp = Timestamp::from_micros(1);
const FAR: Timestamp = Timestamp::from_micros(u64::MAX);

impl Moments {
    pub(super) fn of(events: &[Event]) -> Self {
        Self { earliest: earliest(events), latest: latest(events) }
    }

    /// What may be true of the event after what the model has seen. A decision whose moment is not known is tried as
    /// early as it can be, and where the record would be judged otherwise.
    pub(super) fn of_event(&self, at: usize, event: &Event, model: &Model) -> Vec<Moment> {
        let written_at = event.seen().and_then(|seen| seen.written_at);
        let floor = self.earliest.get(at).copied().unwrap_or(START).max(model.latest);
        let latest = written_at.or(self.latest.get(at).copied()).unwrap_or(FAR);
        let nows: Vec<_> = match event.now {
            Some(now) => vec![now],
            None => std::iter::once(floor)
                .chain(model.deadlines())
                .filter(|now| *now >= floor && *now <= latest)
                .collect(),
        };
        let moment = |now: Timestamp| {
            let stamped_from = written_at.unwrap_or(now.max(floor));
            Moment { now, stamped_from, stamped_until: written_at.unwrap_or(latest).max(stamped_from) }
        };
        nows.into_iter().map(moment).collect()
    }
}

fn earliest(events: &[Event]) -> Vec<Timestamp> {
    let mut ended: Vec<_> = events.iter().filter_map(|event| Some((event.deadline()?, event.now?))).collect();
    ended.sort_unstable();
    let mut last = START;
    for (_, now) in &mut ended {
        last = last.max(*now);
        *now = last;
    }
    let before = |event: &Event| {
        let count = ended.partition_point(|(returned_at, _)| *returned_at < event.invoked_at);
        count.checked_sub(1).and_then(|at| ended.get(at)).map_or(START, |(_, now)| *now)
    };
    events.iter().map(before).collect()
}

fn latest(events: &[Event]) -> Vec<Timestamp> {
    let mut begun: Vec<_> = events.iter().filter_map(|event| Some((event.invoked_at, event.now?))).collect();
    begun.sort_unstable();
    let mut first = FAR;
    for (_, now) in begun.iter_mut().rev() {
        first = first.min(*now);
        *now = first;
    }
    let after = |event: &Event| {
        let ended = event.deadline()?;
        let count = begun.partition_point(|(invoked_at, _)| *invoked_at <= ended);
        begun.get(count).map(|(_, now)| *now)
    };
    events.iter().map(|event| after(event).unwrap_or(FAR)).collect()
}

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
