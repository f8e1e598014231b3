//! The effects of the frames that are written together, and the callers that wait for them.

use std::collections::HashMap;
use std::sync::Arc;

use semel::Error;
use semel::clock::Timestamp;
use semel::record::Record;

use super::requests::{ReplyTo, SwapAnswer, answer, refuse};
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
    callers: Vec<(ReplyTo<SwapAnswer>, Timestamp, SwapAnswer)>,
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
    pub(super) fn answer_later(&mut self, caller: ReplyTo<SwapAnswer>, now: Timestamp, value: SwapAnswer) {
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

#[cfg(test)]
mod tests {
    use semel::ErrorKind;
    use semel::record::StateKind;
    use semel::store::SwapReply;
    use tokio::sync::oneshot;

    use super::*;
    use crate::format::frame::{FOREVER, Head, Kind};

    fn entry(id: u8, offset: u32) -> Entry {
        let (kind, moment) = (Kind::Record(StateKind::Done), Timestamp::from_micros(1));
        let head = Head { kind, version: 1, kept_until: FOREVER, moment, id: [id; 16] };
        Entry::new(1, offset, 96, &head).unwrap()
    }

    fn record() -> Arc<Record> {
        use semel::record::Version;
        let ask = semel_testkit::sample::ask(&semel_testkit::sample::key("batch").unwrap());
        semel_testkit::sample::running(&ask).unwrap().next.stamp(Version::new(1), Timestamp::from_micros(1))
    }

    #[test]
    fn a_record_that_is_moved_and_written_in_one_batch_counts_where_it_was_written() {
        let mut batch = WriteBatch::default();
        batch.move_record(entry(1, 64), entry(1, 160));
        batch.move_record(entry(2, 256), entry(2, 352));
        batch.write(entry(1, 448), record());
        let moves: Vec<_> = batch.moves().copied().collect();
        assert_eq!(moves, [Move { from: entry(2, 256), to: entry(2, 352) }]);
        assert_eq!(batch.entries().collect::<Vec<_>>(), [entry(1, 448)]);
        assert!(batch.written(&[1; 16]).is_some() && batch.written(&[2; 16]).is_none());
    }

    #[test]
    fn every_caller_is_answered_once_and_the_next_batch_starts_empty() {
        for fails in [false, true] {
            let mut batch = WriteBatch::default();
            let (caller, mut answer) = oneshot::channel();
            let value = SwapAnswer { replies: [SwapReply::Full].into(), unread: Vec::new() };
            batch.answer_later(caller, Timestamp::from_micros(7), value);
            batch.write(entry(1, 64), record());
            batch.forget_before(3);
            assert!(answer.try_recv().is_err(), "not before the batch is on disk");
            if fails {
                batch.fail(&|| Error::new(ErrorKind::Unknown, "the disk failed"));
                assert_eq!(answer.try_recv().unwrap().err().unwrap().kind(), ErrorKind::Unknown);
            } else {
                batch.finish();
                assert_eq!(answer.try_recv().unwrap().unwrap().now, Timestamp::from_micros(7));
            }
            assert!(batch.entries().next().is_none() && batch.oldest_needed().is_none());
        }
    }
}
