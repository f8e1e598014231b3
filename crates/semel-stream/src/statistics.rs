//! What a pipeline has done and what it has open: its events page by page, and all of them counted.

use semel::clock::Timestamp;
use semel::record::{Record, State, StateKind};
use semel::store::{Filter, Scan};
use semel::{Error, Outcome, RecordId, Result};

use crate::offset::StreamOffset;
use crate::pipeline::{Pipeline, RECEIPT};
use crate::receipt::Receipt;

/// How many records are looked through at a time.
const PAGE: usize = 1_000;

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventState {
    /// It was processed.
    Processed,
    /// It could not be processed, and was put aside.
    DeadLetter,
    /// Somebody works on it.
    Running,
    /// It failed, and will be tried again.
    Released,
    /// Nobody works on it before somebody has looked.
    Held,
}

/// What a pipeline knows of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// The key of the event.
    pub event: Box<str>,
    /// What became of it.
    pub state: EventState,
    /// Since when, on the store's clock.
    pub since: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// How often it was delivered again since; a few seconds late.
    pub duplicates: u64,
    /// What its handler said, if it has a receipt.
    pub outcome: Option<Outcome>,
    /// Who works on it, or why it was released or held.
    pub who_or_why: Option<Box<str>>,
}

/// Which events of a pipeline are wanted.
#[derive(Clone, Debug, Default)]
pub struct ReceiptFilter {
    /// In one of these states; empty for any.
    pub states: Vec<EventState>,
    /// Only the event with this key.
    pub event: Option<Box<str>>,
}

/// Which page of a walk.
#[derive(Clone, Copy, Debug)]
pub struct ReceiptsAfter {
    /// Behind this record; `None` for the first page.
    pub after: Option<RecordId>,
    /// How many records are looked at; fewer may be wanted.
    pub limit: usize,
}

/// Some events.
#[derive(Clone, Debug, Default)]
pub struct ReceiptPage {
    /// In the order of their records' ids, which means nothing.
    pub events: Vec<EventRecord>,
    /// Records that cannot be read, and why. Whether they are this pipeline's is not known.
    pub damaged: Vec<(RecordId, Error)>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<RecordId>,
}

/// A pipeline in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Events that were processed, dead letters not included.
    pub receipts: u64,
    /// Events that were put aside.
    pub dead_letters: u64,
    /// Events that somebody works on.
    pub running: u64,
    /// Events that nobody may process before somebody has looked.
    pub held: u64,
    /// Events that failed and will be tried again.
    pub released: u64,
    /// How often events were delivered again, and passed over.
    pub duplicates: u64,
    /// How far each stream has been read.
    pub offsets: Vec<StreamOffset>,
}

impl EventState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Processed, Self::DeadLetter, Self::Running, Self::Released, Self::Held];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::DeadLetter => "dead letter",
            Self::Running => "running",
            Self::Released => "released",
            Self::Held => "held",
        }
    }

    /// The state of the record of such an event.
    const fn of_record(self) -> StateKind {
        match self {
            Self::Processed | Self::DeadLetter => StateKind::Done,
            Self::Running => StateKind::Running,
            Self::Released => StateKind::Released,
            Self::Held => StateKind::Held,
        }
    }
}

impl EventRecord {
    /// What the record of an event says.
    pub fn read(record: &Record) -> Self {
        let is_dead = || Receipt::read(record).is_some_and(|receipt| receipt.is_dead_letter());
        let (state, since, who_or_why) = match &record.state {
            State::Done(done) if is_dead() => (EventState::DeadLetter, done.settled_at, None),
            State::Done(done) => (EventState::Processed, done.settled_at, None),
            State::Running(running) => {
                (EventState::Running, running.grant.granted_at, Some(&*running.grant.owner))
            }
            State::Released(released) => (EventState::Released, released.settled_at, Some(&*released.reason)),
            State::Held(held) => (EventState::Held, held.held_at, Some(held.reason.as_str())),
        };
        Self {
            event: record.key.name().into(),
            state,
            since,
            attempts: record.attempt,
            duplicates: record.duplicates.count,
            outcome: record.outcome().cloned(),
            who_or_why: who_or_why.map(Into::into),
        }
    }
}

impl ReceiptFilter {
    fn wants(&self, event: &EventRecord) -> bool {
        self.states.is_empty() || self.states.contains(&event.state)
    }
}

impl Pipeline {
    /// A page of this pipeline's events: those with a receipt, and those that are still open.
    pub async fn receipts(&self, filter: &ReceiptFilter, page: ReceiptsAfter) -> Result<ReceiptPage> {
        let mut states: Vec<_> = filter.states.iter().map(|state| state.of_record()).collect();
        states.dedup();
        let records = Filter { states, name: filter.event.clone(), ..self.filter(RECEIPT) };
        let depth = records.scope.len();
        let found =
            self.semel().scan(Scan { filter: records, after: page.after, limit: page.limit.max(1) }).await?;
        let events = found
            .records
            .iter()
            // A scope that only begins like this one is another pipeline's.
            .filter(|record| record.key.scope().count() == depth)
            .map(|record| EventRecord::read(record))
            .filter(|event| filter.wants(event))
            .collect();
        Ok(ReceiptPage { events, damaged: found.damaged, next: found.next })
    }

    /// Counts everything that this pipeline keeps, page by page: on a large store that is work for its server.
    pub async fn statistics(&self) -> Result<Statistics> {
        let mut statistics = Statistics { offsets: self.offsets().await?, ..Statistics::default() };
        let mut after = None;
        loop {
            let page = self.receipts(&ReceiptFilter::default(), ReceiptsAfter { after, limit: PAGE }).await?;
            page.events.iter().for_each(|event| statistics.count(event));
            after = page.next;
            if after.is_none() {
                return Ok(statistics);
            }
        }
    }
}

impl Statistics {
    /// Counts one more event.
    pub fn count(&mut self, event: &EventRecord) {
        let number = match event.state {
            EventState::Processed => &mut self.receipts,
            EventState::DeadLetter => &mut self.dead_letters,
            EventState::Running => &mut self.running,
            EventState::Released => &mut self.released,
            EventState::Held => &mut self.held,
        };
        *number = number.saturating_add(1);
        self.duplicates = self.duplicates.saturating_add(event.duplicates);
    }
}
