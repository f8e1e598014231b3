//! What callers were told, and at which operation of the disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::{Draft, Keep, Record};
use semel::store::Swap;

use super::expected::{Expected, InFlight};

/// Every write that was asked for, in order.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    notes: Vec<Note>,
    /// From which operation on the clock stood where.
    readings: Vec<(usize, Timestamp)>,
}

#[derive(Clone)]
struct Note {
    /// How many operations there were before the ask.
    begun: usize,
    next: Draft,
    keep: Keep,
    told: Told,
}

/// What the caller heard.
#[derive(Clone)]
enum Told {
    /// That it is stored; how many operations there were by then.
    Swapped { at: usize, record: Arc<Record> },
    /// Nothing that it could rely on.
    Unknown,
}

impl Ledger {
    /// The clock stands there from this operation on.
    pub(crate) fn reads(&mut self, operation: usize, clock: Timestamp) {
        self.readings.push((operation, clock));
    }

    /// A swap was acknowledged.
    pub(crate) fn acknowledged(&mut self, swap: &Swap, begun: usize, at: usize, record: Arc<Record>) {
        let told = Told::Swapped { at, record };
        self.notes.push(Note { begun, next: swap.next.clone(), keep: swap.keep, told });
    }

    /// Nobody knows what became of a swap.
    pub(crate) fn unknown(&mut self, swap: &Swap, begun: usize) {
        let told = Told::Unknown;
        self.notes.push(Note { begun, next: swap.next.clone(), keep: swap.keep, told });
    }

    /// How many swaps were acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.acknowledgements().count()
    }

    /// What was acknowledged, in order.
    pub(crate) fn acknowledgements(&self) -> impl Iterator<Item = (&Arc<Record>, Keep)> {
        self.notes.iter().filter_map(|note| match &note.told {
            Told::Swapped { record, .. } => Some((record, note.keep)),
            Told::Unknown => None,
        })
    }

    /// What must hold for a disk whose last operation was the nth.
    pub(crate) fn as_of(&self, operation: usize) -> Expected {
        let mut expected = Expected {
            lives: BTreeMap::new(),
            stamped: Timestamp::default(),
            clock: self.clock_at(operation),
        };
        for note in self.notes.iter().filter(|note| note.begun < operation) {
            match &note.told {
                Told::Swapped { at, record } if *at <= operation => expected.acknowledge(record, note.keep),
                Told::Swapped { .. } | Told::Unknown => {
                    let until = note.keep.until(self.clock_at(note.begun));
                    let life = expected.lives.entry(note.next.key().id()).or_default();
                    life.in_flight.push(InFlight { next: note.next.clone(), until });
                }
            }
        }
        expected
    }

    fn clock_at(&self, operation: usize) -> Timestamp {
        let reading = self.readings.iter().rev().find(|(since, _)| *since <= operation);
        reading.map_or(Timestamp::from_micros(1), |(_, clock)| *clock)
    }
}
