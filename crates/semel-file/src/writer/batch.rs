//! What is written, and synced, in one go: frames, what they change, and who waits for them.

use std::collections::HashMap;
use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::Record;

use super::ask::{Caller, Told};
use crate::format::frame::IndexKey;
use crate::index::Entry;

/// A run that is put together. Nothing in it counts until it is on disk.
#[derive(Default)]
pub(super) struct WriteBatch {
    /// What will be written, from [`at`](Self::at) on.
    pub(super) bytes: Vec<u8>,
    /// Where in the segment it begins; before the header if it is the segment's first.
    pub(super) at: u32,
    /// Where its first frame begins.
    pub(super) start: u32,
    /// What it changes, and the record as it was stamped.
    pub(super) changed: HashMap<IndexKey, (Entry, Arc<Record>), Halves>,
    /// What it moves out of an old segment.
    pub(super) moved: Vec<Move>,
    /// From which segment on everything is still needed, if it says so.
    pub(super) forget_before: Option<u32>,
    /// Who waits.
    pub(super) callers: Vec<(Caller<Vec<Told>>, Timestamp, Vec<Told>)>,
}

/// A record that keeps its version and changes its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) from: Entry,
    pub(super) to: Entry,
}

impl WriteBatch {
    /// Where in the segment the next frame goes.
    pub(super) fn end(&self) -> u32 {
        self.at.saturating_add(crate::format::field::small(self.bytes.len()))
    }

    /// Ready for the next run, with its memory at hand.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.changed.clear();
        self.moved.clear();
        self.forget_before = None;
        self.callers.clear();
    }
}

/// Half an id is a digest already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Halves;

#[derive(Debug, Default)]
pub(super) struct HalfHasher(u64);

impl std::hash::BuildHasher for Halves {
    type Hasher = HalfHasher;

    fn build_hasher(&self) -> HalfHasher {
        HalfHasher(0)
    }
}

impl std::hash::Hasher for HalfHasher {
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
