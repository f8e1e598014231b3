//! What a pipeline has done and what it has open: its events page by page, and all of them counted.

use semel::clock::Timestamp;
use semel::record::{Record, State, StateKind};
use semel::store::{Filter, Scan};
use semel::{Error, Outcome, RecordId, Result};

use crate::event_id::EventId;
use crate::offset::StreamOffset;
use crate::pipeline::Pipeline;
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
    /// The key of the event, or its place if it has none.
    pub event: Box<str>,
    /// Whether the event has a key.
    pub has_key: bool,
    /// What became of it, at its last run.
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
    /// Which requeue its last run was; 0 for the first run.
    pub requeue: u32,
    /// Whether it was requeued since, and no consumer has taken it up.
    pub is_waiting: bool,
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
    /// Which event.
    pub fn id(&self) -> EventId {
        let name = self.event.clone();
        if self.has_key { EventId::Keyed(name) } else { EventId::Keyless(name) }
    }

    /// What the record of an event says, and nothing of what became of it later.
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
        let run = EventId::read(record.key.operation(), record.key.name());
        Self {
            event: record.key.name().into(),
            has_key: run.as_ref().is_none_or(|(event, _)| event.has_key()),
            state,
            since,
            attempts: record.attempt,
            duplicates: record.duplicates.count,
            outcome: record.outcome().cloned(),
            who_or_why: who_or_why.map(Into::into),
            requeue: run.map_or(0, |(_, number)| number),
            is_waiting: false,
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
        let is_unsettled = !states.is_empty() && !states.contains(&StateKind::Done);
        let records = Filter { states, name: filter.event.clone(), ..self.filter_all() };
        let depth = records.scope.len();
        let found =
            self.semel().scan(Scan { filter: records, after: page.after, limit: page.limit.max(1) }).await?;
        let is_first_run = |record: &Record| {
            // A scope that only begins like this one is another pipeline's.
            record.key.scope().count() == depth
                && matches!(EventId::read(record.key.operation(), record.key.name()), Some((_, 0)))
        };
        let runs = found.records.iter().filter(|record| is_first_run(record));
        let mut events: Vec<_> = runs.map(|record| EventRecord::read(record)).collect();
        if page.after.is_none() && is_unsettled {
            // The first runs of these are done, so the scan leaves them out.
            events.extend(self.taken_up(filter).await?);
        }
        self.follow_requeues(&mut events).await?;
        events.retain(|event| filter.wants(event));
        Ok(ReceiptPage { events, damaged: found.damaged, next: found.next })
    }

    /// What became of these events, at their last runs; one answer for each, in their order. `None` for one that nobody has
    /// processed, or whose retention is over.
    pub async fn events(&self, events: &[EventId]) -> Result<Vec<Result<Option<EventRecord>>>> {
        let keys: Result<Vec<_>> = events.iter().map(|event| self.run_key(event, 0)).collect();
        let records = self.semel().get_all(&keys?).await?;
        let mut found = Vec::new();
        let places: Vec<_> = records
            .into_iter()
            .map(|record| {
                record.map(|record| {
                    record.map(|record| {
                        found.push(EventRecord::read(&record));
                        found.len().saturating_sub(1)
                    })
                })
            })
            .collect();
        self.follow_requeues(&mut found).await?;
        let event = |place: Option<usize>| place.and_then(|place| found.get(place).cloned());
        Ok(places.into_iter().map(|place| place.map(event)).collect())
    }

    /// The events whose requeues wait or are being processed.
    async fn taken_up(&self, filter: &ReceiptFilter) -> Result<Vec<EventRecord>> {
        let waiting = self.waiting().await?;
        let ids = waiting.iter().filter_map(|run| EventId::read(&run.operation, &run.name));
        let ids: Vec<_> = ids
            .map(|(event, _)| event)
            .filter(|event| filter.event.as_deref().is_none_or(|wanted| wanted == event.name()))
            .collect();
        let events = self.events(&ids).await?;
        Ok(events.into_iter().filter_map(|event| event.ok().flatten()).collect())
    }

    /// Replaces each dead letter that was requeued by its last run. Each round is one load for all of them.
    async fn follow_requeues(&self, events: &mut [EventRecord]) -> Result<()> {
        let mut open: Vec<_> =
            events.iter_mut().filter(|event| event.state == EventState::DeadLetter).collect();
        if open.is_empty() {
            return Ok(());
        }
        let mut last = Vec::new();
        while !open.is_empty() {
            let keys: Result<Vec<_>> =
                open.iter().map(|event| self.run_key(&event.id(), event.requeue.saturating_add(1))).collect();
            let runs = self.semel().get_all(&keys?).await?;
            let mut again = Vec::new();
            for (event, run) in open.into_iter().zip(runs) {
                // A run that cannot be read says nothing of what became of the event.
                let Some(run) = run.ok().flatten() else {
                    last.push(event);
                    continue;
                };
                *event = EventRecord { duplicates: event.duplicates, ..EventRecord::read(&run) };
                if event.state == EventState::DeadLetter {
                    again.push(event);
                }
            }
            open = again;
        }
        let waiting = if last.is_empty() { Vec::new() } else { self.waiting().await? };
        for event in last {
            let operation = event.id().operation(event.requeue.saturating_add(1));
            event.is_waiting =
                waiting.iter().any(|run| *run.operation == *operation && run.name == event.event);
        }
        Ok(())
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
