//! What a walk through a store counted: records, and what pipelines have done and how far they have read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use semel::RecordId;
use semel::clock::Timestamp;
use semel::machine::offset;
use semel::record::{Record, State, StateKind};
use semel_stream::{EventId, EventRecord, EventState, KeptLetter, Statistics, StreamOffset};

use crate::format::record::since;

/// The operation of offsets.
const OFFSET: &str = "offset";
/// How many pipelines are told apart within one scope.
const PIPELINES_MAX: usize = 500;
/// How many streams of one pipeline are told apart.
const STREAMS_MAX: usize = 1_000;
/// How many dead letters of one pipeline are remembered: the newest.
const DEAD_LETTERS_MAX: usize = 20;
/// How much is remembered of why an event was put aside.
const ERROR_CHARS_MAX: usize = 300;

/// What a walk through the store counted, within one scope.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// By state.
    pub running: u64,
    /// By state.
    pub done: u64,
    /// By state.
    pub released: u64,
    /// By state.
    pub held: u64,
    /// Running, not renewed in time, and not held: the next claim runs them again.
    pub lapsed: u64,
    /// There, and unreadable. Only known for a whole store.
    pub damaged: u64,
    /// There, and past their time: a sweep removes them. Only known for a whole store.
    pub past: u64,
    /// What all outcomes take together.
    pub outcome_bytes: u64,
    /// Claims that were answered by replay or busy.
    pub duplicates: u64,
    /// Requests with a record's key and another fingerprint.
    pub mismatches: u64,
    /// The ones that have been running for longest, oldest first. Without the values of their steps, which may be large.
    pub oldest_running: Vec<Record>,
    /// The ones that have been held for longest, oldest first. Without the values of their steps, too.
    pub oldest_held: Vec<Record>,
    /// What pipelines have done.
    pub pipelines: Pipelines,
    /// When the walk ended, on the store's clock; `None` before the first.
    pub as_of: Option<Timestamp>,
    /// How long it took.
    pub took: Duration,
}

impl Counted {
    /// How many records count.
    pub fn records(&self) -> u64 {
        [self.running, self.done, self.released, self.held].into_iter().fold(0, u64::saturating_add)
    }

    /// Counts records that were read at `now`, those past their time included.
    pub fn add_all(&mut self, records: &[Arc<Record>], now: Timestamp, oldest_max: usize) {
        for record in records {
            if record.is_live(now) {
                self.add(record, now, oldest_max);
            } else {
                self.past = self.past.saturating_add(1);
            }
        }
    }

    /// Counts one more record as everybody sees it at `now`, and remembers it if it is among the `oldest_max` oldest that
    /// run or are held.
    pub fn add(&mut self, record: &Arc<Record>, now: Timestamp, oldest_max: usize) {
        let record = &*Arc::clone(record).seen_at(now);
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.duplicates, record.duplicates.count);
        add(&mut self.mismatches, record.mismatches.count);
        self.pipelines.add(record);
        match &record.state {
            State::Running(running) => {
                add(&mut self.running, 1);
                add(&mut self.lapsed, u64::from(!running.lease_is_good(now)));
                keep_older(&mut self.oldest_running, record, oldest_max);
            }
            State::Done(done) => {
                add(&mut self.done, 1);
                add(&mut self.outcome_bytes, done.outcome.bytes().len() as u64);
            }
            State::Released(_) => add(&mut self.released, 1),
            State::Held(_) => {
                add(&mut self.held, 1);
                keep_older(&mut self.oldest_held, record, oldest_max);
            }
        }
    }
}

/// Keeps the list sorted and bounded, whatever the order in which records come: of two that are as old, the one with the
/// smaller id is first. Most records are newer than all that are kept, and cost one comparison.
fn keep_older(oldest: &mut Vec<Record>, record: &Record, oldest_max: usize) {
    let age = |record: &Record| (since(record), record.key.id());
    let at = age(record);
    if oldest.len() >= oldest_max && oldest.last().is_none_or(|last| age(last) <= at) {
        return;
    }
    let place = oldest.partition_point(|other| age(other) <= at);
    oldest.insert(place, without_step_values(record));
    oldest.truncate(oldest_max);
}

fn without_step_values(record: &Record) -> Record {
    let mut record = record.clone();
    let steps = match &mut record.state {
        State::Running(running) => &mut running.steps,
        State::Released(released) => &mut released.steps,
        State::Held(held) => &mut held.steps,
        State::Done(_) => return record,
    };
    for step in steps {
        step.value = [].into();
    }
    record
}

/// Pipelines by the tenant's path, with the pipeline's name as its last part.
#[derive(Clone, Debug, Default)]
pub struct Pipelines {
    found: BTreeMap<Vec<Box<str>>, PipelineCounted>,
    /// Whether there were more than are told apart.
    pub has_more: bool,
}

/// What a walk found of one pipeline.
#[derive(Clone, Debug, Default)]
pub struct PipelineCounted {
    /// Its events in numbers, and its offsets by the names of their streams.
    pub statistics: Statistics,
    /// The newest events that were put aside, newest first; those that were requeued since included.
    pub dead_letters: Vec<PutAside>,
    /// Requeues that were found before the dead letters that they are of.
    requeued: u64,
}

/// An event that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutAside {
    /// Of its record.
    pub id: RecordId,
    /// Its key, or its place if it has none.
    pub event: Box<str>,
    /// Whether it has a key.
    pub has_key: bool,
    /// When.
    pub at: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// Why, if that was said.
    pub error: Option<Box<str>>,
}

impl Pipelines {
    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&[Box<str>], &PipelineCounted)> {
        self.found.iter().map(|(scope, pipeline)| (scope.as_slice(), pipeline))
    }

    /// Takes note of a record, if it is a pipeline's.
    fn add(&mut self, record: &Record) {
        match record.key.operation() {
            OFFSET if record.state.kind() == StateKind::Done => {
                let Some(offset) = offset::read(record) else { return };
                if let Some(pipeline) = self.of(record) {
                    pipeline.add_offset(StreamOffset {
                        stream: record.key.name().into(),
                        offset,
                        at: record.changed_at,
                    });
                }
            }
            operation => {
                if let Some((_, requeue)) = EventId::read(operation, record.key.name())
                    && let Some(pipeline) = self.of(record)
                {
                    pipeline.add_run(record, requeue);
                }
            }
        }
    }

    /// The pipeline that a record is of; `None` if it is of none, or of one too many.
    fn of(&mut self, record: &Record) -> Option<&mut PipelineCounted> {
        let scope: Vec<Box<str>> = record.key.scope().map(Into::into).collect();
        if scope.is_empty() {
            return None;
        }
        if self.found.len() >= PIPELINES_MAX && !self.found.contains_key(&scope) {
            self.has_more = true;
            return None;
        }
        Some(self.found.entry(scope).or_default())
    }
}

impl PipelineCounted {
    /// Counts a run of an event. A requeue stands for the dead letter that it is of: that one is no longer counted, whichever
    /// of the two the walk comes to first.
    fn add_run(&mut self, record: &Record, requeue: u32) {
        let event = EventRecord::read(record);
        if requeue > 0 {
            match self.statistics.dead_letters {
                0 => self.requeued = self.requeued.saturating_add(1),
                letters => self.statistics.dead_letters = letters.saturating_sub(1),
            }
        }
        if event.state == EventState::DeadLetter && self.requeued > 0 {
            self.requeued = self.requeued.saturating_sub(1);
        } else {
            self.statistics.count(&event);
        }
        if event.state == EventState::DeadLetter && requeue == 0 {
            self.remember(record, event);
        }
    }

    fn remember(&mut self, record: &Record, event: EventRecord) {
        let newness = (event.since, record.key.id());
        let place = self.dead_letters.partition_point(|other| (other.at, other.id) > newness);
        if place >= DEAD_LETTERS_MAX {
            return;
        }
        let letter = record.outcome().and_then(KeptLetter::read);
        let (attempts, error) = letter.map_or((None, None), |letter| (letter.attempts, letter.error));
        let letter = PutAside {
            id: record.key.id(),
            event: event.event,
            has_key: event.has_key,
            at: event.since,
            attempts: attempts.unwrap_or(event.attempts),
            error: error.map(|error| error.chars().take(ERROR_CHARS_MAX).collect::<String>().into()),
        };
        self.dead_letters.insert(place, letter);
        self.dead_letters.truncate(DEAD_LETTERS_MAX);
    }

    fn add_offset(&mut self, offset: StreamOffset) {
        let offsets = &mut self.statistics.offsets;
        if offsets.len() >= STREAMS_MAX {
            return;
        }
        let place = offsets.partition_point(|other| other.stream < offset.stream);
        offsets.insert(place, offset);
    }
}
