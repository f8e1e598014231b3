//! The end of the log: the segment that is written, the bytes that go behind it, and the change to the next segment.

use std::sync::Arc;

use semel::Result;
use semel::store::SwapReply;

use super::maintenance::Maintenance;
use super::segment::{Segment, fill_with_zeros};
use super::spare::{NoSpare, WantedSegment};
use super::tail::Tail;
use super::usage::Usage;
use crate::error::is_full;
use crate::format::field::small;
use crate::format::frame::{self, FRAME_HEAD_BYTES, Head, Kind, padded};
use crate::format::header::{HEADER_BYTES, Header};
use crate::format::identity::StoreId;
use crate::index::Entry;
use crate::reader::Reader;

/// Smallest segment, where the largest allowed one is not smaller still.
pub(crate) const SEGMENT_BYTES_MIN: u32 = 4 << 20;
/// From this size on a batch is written, however many callers still wait: the first of them have waited long enough.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// How many bytes at the end of a segment only notes may use: two of them fit. On a full disk, the note that gives
/// segments back must find room.
const NOTES_BYTES: u32 = 2 * FRAME_HEAD_BYTES;
/// The share of a segment that new records leave to those that are there: one in so many bytes. On a full disk, the runs of
/// one segment must be able to end in the next, and an ending may take a little more than its claim.
const ENDINGS_SHARE: u32 = 16;

/// The end of the log as recovery found it.
pub(crate) struct LogState {
    pub(crate) store: StoreId,
    pub(crate) segment_bytes_max: u32,
    /// The segment that is written, and where its frames end; zero if it has no header yet.
    pub(crate) active: Arc<Segment>,
    pub(crate) tail: u32,
    /// How long its file is.
    pub(crate) capacity: u32,
    /// Where the frames of the segment before it end.
    pub(crate) previous_end: u32,
    pub(crate) next_version: u64,
    pub(crate) usage: Usage,
    /// Says outside of the log how far it is acknowledged.
    pub(crate) witness: Tail,
}

impl LogState {
    /// How large the next segment is to be. An eighth of the log: few files for a large store, little room for a small one.
    pub(crate) fn next_segment_bytes(&self) -> u32 {
        let most = self.segment_bytes_max;
        let eighth = u32::try_from(self.usage.total_bytes() / 8).unwrap_or(u32::MAX);
        eighth.clamp(SEGMENT_BYTES_MIN.min(most), most)
    }
}

/// Appends frames to the log, a batch at a time.
pub(crate) struct Appender {
    reader: Arc<Reader>,
    maintenance: Maintenance,
    state: LogState,
    /// The batch: what will be written from `tail` on, the header included if it is the segment's first.
    bytes: Vec<u8>,
    /// Where the first frame of the batch begins.
    first_frame_at: u32,
}

/// How much of a segment a frame may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentRoom {
    /// All of it: the frame ends or moves a record that is there.
    Whole,
    /// All but what endings need: the record is the first of its key.
    WithoutReserve,
}

/// Why a frame was not appended. Nothing of it was written.
#[derive(Clone, Debug)]
pub(crate) enum NoSpace {
    /// The batch, or the segment, is full: commit, then append again.
    CommitFirst,
    /// The disk is full, or makes no segment for another reason.
    Full(Arc<str>),
    /// The store has stopped.
    Stopped,
}

impl Appender {
    pub(crate) fn new(reader: Arc<Reader>, maintenance: Maintenance, state: LogState) -> Self {
        let mut appender = Self { reader, maintenance, state, bytes: Vec::new(), first_frame_at: 0 };
        appender.begin();
        appender
    }

    /// Appends a frame to the batch. Returns where it will be; `None` for a note, which has no entry.
    pub(crate) fn append(
        &mut self,
        head: &Head,
        body: &[u8],
        room: SegmentRoom,
    ) -> std::result::Result<Option<Entry>, NoSpace> {
        if self.bytes.len() >= BATCH_BYTES_MAX {
            return Err(NoSpace::CommitFirst);
        }
        let bytes = padded(FRAME_HEAD_BYTES.saturating_add(small(body.len())));
        let bytes = match head.kind {
            Kind::Record(_) => bytes.saturating_add(NOTES_BYTES),
            Kind::Forget | Kind::Closed => bytes,
        };
        if self.end().saturating_add(bytes) > self.limit(room) {
            self.make_room(bytes)?;
        }
        let offset = self.end();
        let seed = self.state.active.seed;
        let bytes = frame::push(&mut self.bytes, seed, self.first_frame_at, offset, head, body);
        Ok(Entry::new(self.state.active.number, offset, bytes, head))
    }

    /// Writes the batch and syncs it. An error means that the store has stopped, and that it is unknown what is on disk.
    pub(crate) fn commit(&mut self) -> Result<()> {
        if self.is_empty() {
            return self.reader.health.check().map_err(|_| self.reader.health.unknown());
        }
        if self.reader.health.check().is_ok() {
            self.write();
        }
        self.reader.health.check().map_err(|_| self.reader.health.unknown())?;
        self.state.usage.written(self.bytes.len() as u64);
        self.state.tail = self.end();
        // Before any caller is answered. If it fails, the bound is lower, which changes nothing for them.
        drop(self.state.witness.note(self.state.active.number, self.state.tail));
        self.begin();
        Ok(())
    }

    fn write(&self) {
        let file = &self.state.active.file;
        let written = file
            .write_at(&self.bytes, u64::from(self.state.tail))
            .map_err(|error| ("written", error))
            .and_then(|()| file.sync().map_err(|error| ("synced", error)));
        if let Err((what, error)) = written {
            let (name, at) = (self.state.active.name(), self.state.tail);
            self.reader.health.fail(format!("{name} could not be {what} at byte {at}: {error}"));
        }
    }

    /// Whether the batch holds no frame.
    pub(crate) fn is_empty(&self) -> bool {
        self.end() <= self.first_frame_at
    }

    /// How many bytes of the active segment are left.
    pub(crate) fn bytes_left(&self) -> u32 {
        self.state.capacity.saturating_sub(self.end())
    }

    /// How large the active segment is.
    pub(crate) fn capacity(&self) -> u32 {
        self.state.capacity
    }

    /// The version of the next record. It is used up once the record is appended.
    pub(crate) fn next_version(&self) -> u64 {
        self.state.next_version
    }

    pub(crate) fn use_version(&mut self) {
        self.state.next_version = self.state.next_version.saturating_add(1);
    }

    /// How much of each segment still counts.
    pub(crate) fn usage(&self) -> &Usage {
        &self.state.usage
    }

    pub(crate) fn usage_mut(&mut self) -> &mut Usage {
        &mut self.state.usage
    }

    /// Whether the disk has no room for the next segment.
    pub(crate) fn has_no_room(&self) -> bool {
        self.maintenance.has_no_room()
    }

    /// The answer to a new record while there is no room for it.
    pub(crate) fn refusal(&self) -> SwapReply {
        self.maintenance.refusal()
    }

    /// Stops the store if the maintenance thread has failed.
    pub(crate) fn check_maintenance(&self) {
        if let Some(why) = self.maintenance.failure() {
            self.reader.health.fail(why);
        }
    }

    /// Removes the segments before `oldest`. The log must say on disk that they are needed no more.
    pub(crate) fn remove_before(&mut self, oldest: u32) {
        while self.state.usage.oldest() < oldest {
            let number = self.state.usage.oldest();
            self.reader.segments.remove(number);
            self.maintenance.remove(number);
            self.state.usage.close_oldest();
        }
    }

    /// Ends the maintenance thread once it has done what it was asked for, and notes that the stop was clean.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.maintenance.stop();
        self.reader.health.check()?;
        if let Err(error) = self.state.witness.note_closed(self.state.active.number, self.state.tail) {
            tracing::warn!(%error, "semel: the clean stop could not be noted; the next opening is as after a crash");
        }
        Ok(())
    }

    /// Starts the next batch, behind what is written.
    fn begin(&mut self) {
        self.bytes.clear();
        if self.state.tail == 0 {
            let header = Header {
                number: self.state.active.number,
                first_version: self.state.next_version,
                moment: self.reader.clock.now(),
                oldest: self.state.usage.oldest(),
                previous_end: self.state.previous_end,
                capacity: self.state.capacity,
            };
            self.bytes.extend_from_slice(&header.encode(self.state.store));
        }
        self.first_frame_at = self.end();
    }

    /// Where in the segment the next frame goes.
    fn end(&self) -> u32 {
        self.state.tail.saturating_add(small(self.bytes.len()))
    }

    /// Where a frame has to end.
    fn limit(&self, room: SegmentRoom) -> u32 {
        let reserve = match room {
            SegmentRoom::Whole => 0,
            SegmentRoom::WithoutReserve => self.state.capacity.div_euclid(ENDINGS_SHARE),
        };
        self.state.capacity.saturating_sub(reserve)
    }

    /// Makes room for a frame that does not fit behind the batch: in the next segment, or in a wider one.
    fn make_room(&mut self, bytes: u32) -> std::result::Result<(), NoSpace> {
        if !self.is_empty() {
            return Err(NoSpace::CommitFirst);
        }
        if self.state.tail > HEADER_BYTES {
            self.roll()?;
        }
        let end = self.end().saturating_add(bytes);
        if end > self.state.capacity {
            // A record larger than a segment gets a segment that is as large as it.
            self.widen(end)?;
        }
        Ok(())
    }

    /// Goes on in the next segment. Its header is written with its first frames.
    fn roll(&mut self) -> std::result::Result<(), NoSpace> {
        let (segment, capacity) = match self.maintenance.take_spare() {
            Ok(spare) => spare,
            Err(NoSpare::NoRoom(why)) => return Err(NoSpace::Full(disk_is_full(&why))),
            Err(NoSpare::Refused(why)) => return Err(NoSpace::Full(why)),
            Err(NoSpare::Failed(why)) => {
                self.reader.health.fail(why);
                return Err(NoSpace::Stopped);
            }
        };
        let sealed = std::mem::replace(&mut self.state.active, segment);
        self.state.previous_end = self.state.tail;
        self.state.tail = 0;
        self.state.capacity = capacity;
        self.state.usage.open();
        self.reader.segments.add(Arc::clone(&self.state.active));
        let number = self.state.active.number.saturating_add(1);
        // First: the hint can wait, and a caller may have to wait for the segment.
        self.maintenance.want_spare(WantedSegment { number, bytes: self.state.next_segment_bytes() });
        self.maintenance.hint(sealed, self.state.previous_end);
        self.begin();
        Ok(())
    }

    fn widen(&mut self, end: u32) -> std::result::Result<(), NoSpace> {
        let file = &self.state.active.file;
        let (from, until) = (u64::from(self.state.capacity), u64::from(end));
        match fill_with_zeros(&**file, from, until).and_then(|()| file.sync()) {
            Ok(()) => {
                self.state.capacity = end;
                self.begin();
                Ok(())
            }
            Err(error) if is_full(&error) => {
                drop(file.set_bytes(from));
                Err(NoSpace::Full(disk_is_full(&error.to_string())))
            }
            Err(error) => {
                self.reader.health.fail(format!("a segment could not be made larger: {error}"));
                Err(NoSpace::Stopped)
            }
        }
    }
}

#[cold]
fn disk_is_full(why: &str) -> Arc<str> {
    format!("the disk is full ({why})").into()
}

#[cfg(test)]
mod tests {
    use semel::clock::{SystemClock, Timestamp};
    use semel::record::StateKind;
    use semel::store::Caching;
    use tempfile::TempDir;

    use super::*;
    use crate::disk::Folder;
    use crate::format::frame::FOREVER;
    use crate::recovery::{Recovered, Recovery};

    const SEGMENT_BYTES: u32 = 64 << 10;

    /// The end of an empty log with small segments.
    fn appender(folder: &TempDir) -> Appender {
        let recovery = Recovery {
            disk: Arc::new(Folder::hold(folder.path()).unwrap()),
            place: "a test".into(),
            clock: Arc::new(SystemClock::new()),
            caching: Caching::Allowed,
            segment_bytes_max: SEGMENT_BYTES,
            load_threads: 1,
        };
        let Recovered { reader, start, maintenance } = recovery.open().unwrap();
        Appender::new(reader, maintenance.inline(), start)
    }

    fn head(kind: Kind, version: u64) -> Head {
        Head { kind, version, kept_until: FOREVER, moment: Timestamp::from_micros(1), id: [7; 16] }
    }

    fn record(version: u64) -> Head {
        head(Kind::Record(StateKind::Done), version)
    }

    /// Appends records of this size, without a commit, until there is no space in the active segment.
    fn fill(log: &mut Appender, bytes: usize, room: SegmentRoom) -> Vec<Entry> {
        let appended = (1..).map_while(|version| log.append(&record(version), &vec![7; bytes], room).ok());
        appended.flatten().collect()
    }

    #[test]
    fn frames_follow_each_other_behind_the_header_and_the_tail_moves_with_the_commit() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = appender(&folder);
        assert!(log.is_empty());
        let first = log.append(&record(1), b"twelve bytes", SegmentRoom::Whole).unwrap().unwrap();
        let second = log.append(&record(2), b"twelve bytes", SegmentRoom::Whole).unwrap().unwrap();
        assert_eq!((first.segment, first.offset, second.offset), (1, HEADER_BYTES, HEADER_BYTES + 72));
        assert_eq!((log.state.tail, log.usage().total_bytes()), (0, 0), "nothing is written yet");
        log.commit().unwrap();
        assert_eq!((log.state.tail, log.is_empty()), (HEADER_BYTES + 144, true));
        assert_eq!(log.usage().total_bytes(), u64::from(HEADER_BYTES + 144));
    }

    #[test]
    fn new_records_leave_room_for_endings_and_records_leave_room_for_notes() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = appender(&folder);
        let last = fill(&mut log, 1_000, SegmentRoom::WithoutReserve).pop().unwrap();
        let reserve = SEGMENT_BYTES / ENDINGS_SHARE;
        assert!(last.offset + 1_056 <= SEGMENT_BYTES - reserve && log.bytes_left() >= reserve);
        let last = fill(&mut log, 8, SegmentRoom::Whole).pop().unwrap();
        assert!(last.offset > SEGMENT_BYTES - reserve, "endings use the reserve");
        for number in 0..2 {
            assert!(
                log.append(&head(Kind::Forget, number), &[], SegmentRoom::Whole).is_ok(),
                "note {number} fits"
            );
        }
        let full = log.append(&record(9), &[0; 64], SegmentRoom::Whole);
        assert!(matches!(full, Err(NoSpace::CommitFirst)), "{full:?}");
    }

    #[test]
    fn the_next_segment_begins_after_a_commit_and_knows_where_the_one_before_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = appender(&folder);
        fill(&mut log, 1_000, SegmentRoom::Whole);
        log.commit().unwrap();
        let end = log.state.tail;
        let entry = log.append(&record(100), &[7; 1_000], SegmentRoom::Whole).unwrap().unwrap();
        assert_eq!((entry.segment, entry.offset, log.state.previous_end), (2, HEADER_BYTES, end));
        log.commit().unwrap();
        let bytes = std::fs::read(folder.path().join("00000002.log")).unwrap();
        let header = Header::decode(&bytes, log.state.store, 2).unwrap();
        assert_eq!((header.previous_end, header.capacity), (end, SEGMENT_BYTES));
        assert_eq!(bytes.len(), 64 << 10);
    }

    #[test]
    fn a_record_larger_than_a_segment_gets_one_that_is_large_enough() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = appender(&folder);
        log.append(&record(1), b"small", SegmentRoom::Whole).unwrap();
        let large = vec![7; 200 << 10];
        let first = log.append(&record(2), &large, SegmentRoom::WithoutReserve);
        assert!(matches!(first, Err(NoSpace::CommitFirst)), "{first:?}");
        log.commit().unwrap();
        let entry = log.append(&record(2), &large, SegmentRoom::WithoutReserve).unwrap().unwrap();
        assert_eq!((entry.segment, entry.offset), (2, HEADER_BYTES));
        log.commit().unwrap();
        let bytes = std::fs::read(folder.path().join("00000002.log")).unwrap();
        let header = Header::decode(&bytes, log.state.store, 2).unwrap();
        assert_eq!(
            bytes.len(),
            usize::try_from(header.capacity).unwrap(),
            "the header says how long the file is"
        );
    }

    #[test]
    fn a_batch_that_is_long_enough_is_committed_before_it_grows_further() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = appender(&folder);
        log.state.capacity = 64 << 20;
        let entries = fill(&mut log, 100 << 10, SegmentRoom::Whole);
        assert_eq!(entries.len(), 11, "the record that fills it still goes in");
    }
}
