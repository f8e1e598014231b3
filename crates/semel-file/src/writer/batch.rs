//! The effects of the frames that are written together, and the callers that wait for them.

use std::collections::HashMap;
use std::sync::Arc;

use semel::Error;
use semel::clock::Timestamp;
use semel::record::Record;

use super::requests::{Caller, SwapAnswer, answer, refuse};
use crate::format::frame::IndexKey;
use crate::index::Entry;

/// What the frames of a batch change. Nothing of it counts until the batch is on disk.
#[derive(Default)]
pub(super) struct WriteBatch {
    /// The new entry of each record that is written, and the record as it was stamped.
    changed: HashMap<IndexKey, (Entry, Arc<Record>), IdIsHash>,
    moved: Vec<Move>,
    /// From which segment on everything is still needed, if the batch says so.
    forget_before: Option<u32>,
    callers: Vec<(Caller<SwapAnswer>, Timestamp, SwapAnswer)>,
}

/// A record that keeps its version and changes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) from: Entry,
    pub(super) to: Entry,
}

impl WriteBatch {
    /// The record that the batch writes for this id.
    pub(super) fn written(&self, id: &IndexKey) -> Option<&(Entry, Arc<Record>)> {
        self.changed.get(id)
    }

    pub(super) fn write(&mut self, entry: Entry, record: Arc<Record>) {
        self.changed.insert(entry.id, (entry, record));
    }

    pub(super) fn move_record(&mut self, from: Entry, to: Entry) {
        self.moved.push(Move { from, to });
    }

    /// The batch says that segments before this one are needed no more.
    pub(super) fn forget_before(&mut self, oldest: u32) {
        self.forget_before = Some(oldest);
    }

    /// Answers this caller once the batch is on disk.
    pub(super) fn answer_later(&mut self, caller: Caller<SwapAnswer>, now: Timestamp, value: SwapAnswer) {
        self.callers.push((caller, now, value));
    }

    /// The entries that count once the batch is on disk. A record that the batch both moves and writes counts where it
    /// was written.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.changed.values().map(|(entry, _)| *entry)
    }

    /// The moves that the batch does not overtake itself.
    pub(super) fn moves(&self) -> impl Iterator<Item = &Move> {
        self.moved.iter().filter(|moved| !self.changed.contains_key(&moved.from.id))
    }

    pub(super) fn oldest_needed(&self) -> Option<u32> {
        self.forget_before
    }

    /// Answers all callers: the batch is on disk. Ready for the next batch.
    pub(super) fn finish(&mut self) {
        for (caller, now, value) in self.callers.drain(..) {
            answer(caller, now, value);
        }
        self.clear();
    }

    /// Refuses all callers: it is unknown what is on disk.
    pub(super) fn fail(&mut self, error: &dyn Fn() -> Error) {
        for (caller, _, _) in self.callers.drain(..) {
            refuse(caller, error());
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.changed.clear();
        self.moved.clear();
        self.forget_before = None;
    }
}

/// Hashes an id by its own bytes: it is a digest already.
#[derive(Clone, Copy, Debug, Default)]
struct IdIsHash;

#[derive(Debug, Default)]
struct IdHasher(u64);

impl std::hash::BuildHasher for IdIsHash {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher(0)
    }
}

impl std::hash::Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(part) = bytes.first_chunk::<8>() {
            self.0 ^= u64::from_le_bytes(*part);
        }
    }

    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
