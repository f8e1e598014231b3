//! A place for every frame: behind the run, or in the next segment.

use std::sync::Arc;

use super::judge::Writer;
use crate::error::is_full;
use crate::format::field::small;
use crate::format::frame::{self, FRAME_HEAD_BYTES, Head, Kind, padded};
use crate::format::header::HEADER_BYTES;
use crate::index::Entry;
use crate::log::segment::fill_with_zeros;
use crate::log::spare::{NoSpare, Wanted};

/// From this size on a run is written, however many still wait: the first of them have waited long enough.
const RUN_BYTES_MAX: usize = 1 << 20;

/// How many bytes at the end of a segment only notes may use: two of them fit.
const NOTES_BYTES: u32 = 2 * FRAME_HEAD_BYTES;

/// The share of a segment that new records leave to those that are there: one in so many bytes. On a full disk, the runs of
/// one segment must be able to end in the next, and an ending may take a little more than its claim.
const ENDINGS_SHARE: u32 = 16;

/// Why a frame found no place. Nothing was written.
pub(super) enum NoPlace {
    /// The disk is full, or makes no segment for another reason.
    Full(Arc<str>),
    /// The store has stopped.
    Stopped,
}

impl Writer {
    /// Puts a frame into the run, and finds it a place: what is full is written, and the next segment begun.
    pub(super) fn push(&mut self, head: &Head, body: &[u8]) -> std::result::Result<Option<Entry>, NoPlace> {
        self.push_before(self.start.capacity, head, body)
    }

    /// The same for a record of a key that has none.
    pub(super) fn push_new(
        &mut self,
        head: &Head,
        body: &[u8],
    ) -> std::result::Result<Option<Entry>, NoPlace> {
        let for_endings = self.start.capacity.div_euclid(ENDINGS_SHARE);
        self.push_before(self.start.capacity.saturating_sub(for_endings), head, body)
    }

    /// Puts a frame into the run, in this segment only if it ends before `limit`.
    fn push_before(
        &mut self,
        limit: u32,
        head: &Head,
        body: &[u8],
    ) -> std::result::Result<Option<Entry>, NoPlace> {
        let bytes = padded(FRAME_HEAD_BYTES.saturating_add(small(body.len())));
        if self.run.bytes.len() >= RUN_BYTES_MAX {
            self.commit();
        }
        // The last bytes are for notes: on a full disk, the one that gives segments back must find a place.
        let reserved = if matches!(head.kind, Kind::Record(_)) { NOTES_BYTES } else { 0 };
        if self.run.end().saturating_add(bytes).saturating_add(reserved) > limit {
            self.make_place(bytes.saturating_add(reserved))?;
        }
        let offset = self.run.end();
        let seed = self.start.active.seed;
        let bytes = frame::push(&mut self.run.bytes, seed, self.run.start, offset, head, body);
        Ok(Entry::new(self.start.active.number, offset, bytes, head))
    }

    /// Makes place for a frame that does not fit behind the run.
    fn make_place(&mut self, bytes: u32) -> std::result::Result<(), NoPlace> {
        if self.start.tail > HEADER_BYTES || self.run.end() > HEADER_BYTES {
            self.commit();
            self.reader.health.check().map_err(|_| NoPlace::Stopped)?;
            self.roll()?;
        }
        let end = self.run.end().saturating_add(bytes);
        if end > self.start.capacity {
            // A record larger than a segment gets a segment that is as large as it.
            self.widen(end)?;
        }
        Ok(())
    }

    /// Goes on in the next segment. Its header is written with its first frames.
    fn roll(&mut self) -> std::result::Result<(), NoPlace> {
        let (segment, capacity) = match self.maintenance.take_spare() {
            Ok(spare) => spare,
            Err(NoSpare::NoRoom(why)) => return Err(NoPlace::Full(the_disk_is_full(&why))),
            Err(NoSpare::Refused(why)) => return Err(NoPlace::Full(why)),
            Err(NoSpare::Failed(why)) => {
                self.reader.health.fail(why);
                return Err(NoPlace::Stopped);
            }
        };
        let sealed = std::mem::replace(&mut self.start.active, segment);
        self.start.previous_end = self.start.tail;
        self.start.tail = 0;
        self.start.capacity = capacity;
        self.start.usage.open();
        self.reader.segments.add(Arc::clone(&self.start.active));
        self.maintenance.hint(sealed, self.start.previous_end);
        let next = self.start.active.number.saturating_add(1);
        self.maintenance.want_spare(Wanted { number: next, bytes: self.start.next_segment_bytes() });
        self.begin_run();
        Ok(())
    }

    fn widen(&mut self, end: u32) -> std::result::Result<(), NoPlace> {
        let file = &self.start.active.file;
        let (from, until) = (u64::from(self.start.capacity), u64::from(end));
        match fill_with_zeros(&**file, from, until).and_then(|()| file.sync()) {
            Ok(()) => {
                self.start.capacity = end;
                Ok(())
            }
            Err(error) if is_full(&error) => {
                drop(file.set_bytes(from));
                Err(NoPlace::Full(the_disk_is_full(&error.to_string())))
            }
            Err(error) => {
                self.reader.health.fail(format!("a segment could not be made larger: {error}"));
                Err(NoPlace::Stopped)
            }
        }
    }
}

#[cold]
fn the_disk_is_full(why: &str) -> Arc<str> {
    format!("the disk is full ({why})").into()
}
