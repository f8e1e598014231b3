//! The streams that are read alone: who reads them, and how far they are done.

use std::collections::HashMap;
use std::sync::Arc;

use super::frontier::Frontier;
use super::jobs::Placed;
use crate::offset::Reader;
use crate::source::Reads;

/// One stream that this consumer reads alone.
pub(super) struct Stream {
    pub(super) generation: u64,
    /// `None` until the epoch is taken.
    pub(super) reader: Option<Reader>,
    pub(super) frontier: Frontier<Placed>,
    /// Set while a commit is under way: one at a time, and the next covers all that was done in between.
    pub(super) is_committing: bool,
    /// Set once a commit is wanted, and until it has begun.
    pub(super) is_due: bool,
}

/// All streams.
pub(super) struct Streams {
    reads: Reads,
    by_name: HashMap<Arc<str>, Stream>,
    last: u64,
}

impl Streams {
    pub(super) fn new(reads: Reads) -> Self {
        Self { reads, by_name: HashMap::new(), last: 0 }
    }

    pub(super) fn are_alone(&self) -> bool {
        self.reads == Reads::Alone
    }

    /// A stream is this consumer's from now on, under a new generation.
    pub(super) fn assign(&mut self, stream: &Arc<str>) -> u64 {
        self.last = self.last.wrapping_add(1);
        let generation = self.last;
        let assigned = Stream {
            generation,
            reader: None,
            frontier: Frontier::behind(None),
            is_committing: false,
            is_due: false,
        };
        self.by_name.insert(Arc::clone(stream), assigned);
        generation
    }

    /// A stream is no longer this consumer's.
    pub(super) fn drop(&mut self, stream: &str) {
        self.by_name.remove(stream);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn get_mut(&mut self, stream: &str) -> Option<&mut Stream> {
        self.by_name.get_mut(stream)
    }

    /// The stream as it was when it had this generation.
    pub(super) fn current(&mut self, stream: &str, generation: u64) -> Option<&mut Stream> {
        self.by_name.get_mut(stream).filter(|found| found.generation == generation)
    }

    /// Whether what becomes of a delivery is still this consumer's business.
    pub(super) fn is_current(&self, placed: &Placed) -> bool {
        !self.are_alone()
            || self.by_name.get(&placed.stream).is_some_and(|stream| stream.generation == placed.generation)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Arc<str>, &mut Stream)> {
        self.by_name.iter_mut()
    }

    /// Whether a commit is wanted, or under way.
    pub(super) fn is_any_due(&self) -> bool {
        self.by_name.values().any(|stream| stream.is_committing || stream.is_due)
    }

    /// The reader of a delivery's stream, if everything before it is done: its offset may move with it.
    pub(super) fn reader_if_next(&self, placed: &Placed) -> Option<Reader> {
        let stream =
            self.by_name.get(&placed.stream).filter(|stream| stream.generation == placed.generation)?;
        placed.position.filter(|position| stream.frontier.is_next(*position))?;
        stream.reader.clone()
    }

    /// How many events are done or running behind one that is not done, in the stream where they are most.
    pub(super) fn ahead_most(&self) -> usize {
        self.by_name.values().map(|stream| stream.frontier.ahead()).max().unwrap_or_default()
    }
}
