//! What a walk through a store counted.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::{Record, State};

use super::pipelines::Pipelines;
use crate::format::record::since;

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
    /// Running, and nobody renews.
    pub lapsed: u64,
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

    /// Counts one more record, and remembers it if it is among the `oldest_max` oldest that run or are held.
    pub fn add(&mut self, record: &Record, now: Timestamp, oldest_max: usize) {
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

/// Keeps the list sorted and bounded. Most records are newer than all that are kept, and cost one comparison.
fn keep_older(oldest: &mut Vec<Record>, record: &Record, oldest_max: usize) {
    let at = since(record);
    if oldest.len() >= oldest_max && oldest.last().is_none_or(|last| since(last) <= at) {
        return;
    }
    let place = oldest.partition_point(|other| since(other) <= at);
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
