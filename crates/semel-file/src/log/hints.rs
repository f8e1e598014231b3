//! A sealed segment's hint: written when the segment is full, read when the store is opened.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::format::field::{large, put};
use crate::format::frame::{self, FRAME_HEAD_BYTES, padded, plausible_bytes};
use crate::format::header::HEADER_BYTES;
use crate::format::hint::{self, Directory, HEAD_BYTES, LineOfPart, Subject};
use crate::format::identity::StoreId;
use crate::format::name;
use crate::format::walk::{Step, Walk};
use crate::index::{Entry, HintLine, Index, Memory, shard_of};
use crate::log::segment::Segment;

/// Writes down what a sealed segment has alive. What was replaced was replaced by something that is on disk further on, so
/// it will not be missed. What was forgotten is written down all the same: without it, an earlier word on the same record,
/// in a segment before this one, would be its last.
pub(crate) fn write(
    disk: &dyn Disk,
    store: StoreId,
    segment: &Segment,
    end: u32,
    index: &Index,
) -> io::Result<()> {
    // No more lines than frames fit, in memory that takes room only as far as it is written, and none afterwards.
    let lines_max = large(end).div_euclid(large(FRAME_HEAD_BYTES));
    let mut memory = Memory::zeroed(lines_max.saturating_mul(size_of::<LineOfPart>()));
    let lines: &mut [LineOfPart] = memory.as_chunks_mut().0;
    let (mut last_frame, mut count) = (0, 0_usize);
    let mut walk = Walk::new(&*segment.file, segment.seed, end);
    while let Step::Frame(frame) = walk.next()? {
        last_frame = frame.offset;
        let Some(found) = Entry::of_frame(segment.number, &frame) else { continue };
        if index.get(&found.id).is_none_or(|known| known.is_at(&found))
            && let Some(line) = lines.get_mut(count)
        {
            put(line, 0, &[shard_of(&found.id)]);
            put(line, 1, &found.line());
            count = count.saturating_add(1);
        }
    }
    if walk.at() != end {
        // A hint would hide the damage; without one, the next opening finds it.
        return Err(io::Error::other(format!("{} is damaged at byte {}", segment.name(), walk.at())));
    }
    let (final_name, unfinished) =
        (name::hint(segment.number), name::unfinished(&name::hint(segment.number)));
    let subject = Subject { store, number: segment.number, end };
    let mut bytes = Memory::zeroed(hint::encoded_bytes(count));
    hint::encode_into(&mut bytes, subject, last_frame, lines.get(..count).unwrap_or_default());
    let file = disk.create(&unfinished)?;
    file.write_at(&bytes, 0)?;
    file.sync()?;
    disk.rename(&unfinished, &final_name)
}

/// A hint that speaks of a segment as it is.
pub(crate) struct Hint {
    file: Arc<dyn DiskFile>,
    directory: Directory,
}

impl Hint {
    /// The hint of a segment whose frames end at `end`, if there is one that can be used, and the segment still ends
    /// there with the same frame.
    pub(crate) fn open(disk: &dyn Disk, store: StoreId, segment: &Segment, end: u32) -> Option<Self> {
        let file = disk.open(&name::hint(segment.number)).ok()?;
        let mut head = vec![0; HEAD_BYTES];
        let read = file.read_at(&mut head, 0).ok()?;
        let subject = Subject { store, number: segment.number, end };
        let directory = Directory::decode(head.get(..read)?, subject)?;
        ends_with(segment, directory.last_frame, end).then_some(Self { file, directory })
    }

    /// How many lines one shard has.
    pub(crate) fn line_count(&self, shard: u8) -> usize {
        self.directory.part(shard).map_or(0, |part| part.lines)
    }

    /// The lines of one shard, if they are whole; `buffer` is for their bytes.
    pub(crate) fn lines<'a>(&self, shard: u8, buffer: &'a mut Vec<u8>) -> Option<&'a [HintLine]> {
        let part = self.directory.part(shard)?;
        buffer.clear();
        if part.lines == 0 {
            return Some(&[]);
        }
        // A directory is whole, so this is no more than there was: but the file may have been cut since.
        buffer.resize(part.bytes(), 0);
        let read = self.file.read_at(buffer, part.at).ok()?;
        part.lines(buffer.get(..read)?)
    }
}

/// Whether the last frame of a sealed segment is whole and ends where the segment does.
fn ends_with(segment: &Segment, last_frame: u32, end: u32) -> bool {
    let Some(bytes) = end.checked_sub(last_frame).filter(|_| last_frame >= HEADER_BYTES) else {
        return end == HEADER_BYTES;
    };
    let mut frame = vec![0; large(bytes)];
    let is_read =
        segment.file.read_at(&mut frame, u64::from(last_frame)).is_ok_and(|read| read == frame.len());
    let whole = plausible_bytes(&frame).filter(|exact| is_read && padded(*exact) == bytes);
    whole
        .and_then(|exact| frame.get(..large(exact)))
        .is_some_and(|frame| frame::is_whole(frame, segment.seed, last_frame))
}
