//! What a sealed segment has alive, so that opening need not read the segment. Only a help: one that is missing, damaged or
//! of another format is made anew from the segment itself.
//!
//! ```text
//! magic "SEMELHNT" · format u32 · number u32 · store id 16 bytes · end of the frames u32 · offset of the last frame u32
//! · 256 × (lines u32 · crc32c of the lines u32) · crc32c u32 over all before it
//! · the lines of all parts, 34 bytes each, as the index packs them
//! ```
//!
//! A part is what belongs to one shard of the index, so that opening can load the shards one by one, on two threads.

use super::field::{chunk_at, large, put, u32_at};
use super::identity::StoreId;

const MAGIC: [u8; 8] = *b"SEMELHNT";
/// Format 1 was one list in the order of the log.
const FORMAT: u32 = 2;
const PARTS: usize = 256;
const PARTS_AT: usize = 40;
const PART_BYTES: usize = 8;
const CHECKSUM_AT: usize = PARTS_AT + PARTS * PART_BYTES;

/// How many bytes stand before the lines.
pub(crate) const HEAD_BYTES: usize = CHECKSUM_AT + 4;
/// How many bytes a line has.
pub(crate) const LINE_BYTES: usize = 34;

/// Which segment a hint speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) store: StoreId,
    pub(crate) number: u32,
    /// Where its frames end.
    pub(crate) end: u32,
}

/// What stands before the lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    /// Where the last frame of the segment begins; zero if it has none.
    pub(crate) last_frame: u32,
    parts: Vec<Part>,
}

/// Where the lines of one shard are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where in the hint they begin.
    pub(crate) at: u64,
    /// How many there are.
    pub(crate) lines: usize,
    checksum: u32,
}

impl Part {
    /// How many bytes its lines take.
    pub(crate) fn bytes(&self) -> usize {
        self.lines.saturating_mul(LINE_BYTES)
    }

    /// The lines in these bytes, if they are as they were written.
    pub(crate) fn lines<'a>(&self, bytes: &'a [u8]) -> Option<&'a [[u8; LINE_BYTES]]> {
        let is_whole = bytes.len() == self.bytes() && crc32c::crc32c(bytes) == self.checksum;
        is_whole.then_some(bytes.as_chunks().0)
    }
}

impl Directory {
    /// The directory in the first bytes of a hint, if it is whole and speaks of exactly this segment.
    pub(crate) fn decode(bytes: &[u8], subject: Subject) -> Option<Self> {
        let head: &[u8; HEAD_BYTES] = chunk_at(bytes, 0)?;
        let is_ours = chunk_at::<8>(head, 0) == Some(&MAGIC)
            && u32_at(head, 8) == FORMAT
            && u32_at(head, 12) == subject.number
            && chunk_at::<16>(head, 16) == Some(&subject.store.0)
            && u32_at(head, 32) == subject.end
            && crc32c::crc32c(head.get(..CHECKSUM_AT)?) == u32_at(head, CHECKSUM_AT);
        is_ours.then(|| Self { last_frame: u32_at(head, 36), parts: parts(head) })
    }

    /// The part of one shard.
    pub(crate) fn part(&self, shard: u8) -> Option<Part> {
        self.parts.get(usize::from(shard)).copied()
    }
}

fn parts(head: &[u8; HEAD_BYTES]) -> Vec<Part> {
    let mut at = HEAD_BYTES as u64;
    let mut part = |number: usize| {
        let field = PARTS_AT.saturating_add(number.saturating_mul(PART_BYTES));
        let (lines, checksum) = (large(u32_at(head, field)), u32_at(head, field.saturating_add(4)));
        let part = Part { at, lines, checksum };
        at = at.saturating_add(part.bytes() as u64);
        part
    };
    (0..PARTS).map(&mut part).collect()
}

/// A line behind the byte that says which part it belongs to.
pub(crate) type LineOfPart = [u8; 1 + LINE_BYTES];

/// How many bytes a hint with so many lines has.
pub(crate) fn encoded_bytes(lines: usize) -> usize {
    HEAD_BYTES.saturating_add(lines.saturating_mul(LINE_BYTES))
}

/// Writes the hint of a segment whose last frame begins at `last_frame` into `bytes`, which must have just the
/// [room](encoded_bytes). Within a part, lines stay in their order.
pub(crate) fn encode_into(bytes: &mut [u8], subject: Subject, last_frame: u32, lines: &[LineOfPart]) {
    put(bytes, 0, &MAGIC);
    put(bytes, 8, &FORMAT.to_le_bytes());
    put(bytes, 12, &subject.number.to_le_bytes());
    put(bytes, 16, &subject.store.0);
    put(bytes, 32, &subject.end.to_le_bytes());
    put(bytes, 36, &last_frame.to_le_bytes());
    let mut counts = [0_u32; PARTS];
    for [part, ..] in lines {
        if let Some(count) = counts.get_mut(usize::from(*part)) {
            *count = count.saturating_add(1);
        }
    }
    put_lines(bytes, &counts, lines);
    let mut at = HEAD_BYTES;
    for (part, count) in counts.iter().enumerate() {
        let end = at.saturating_add(large(*count).saturating_mul(LINE_BYTES));
        let checksum = crc32c::crc32c(bytes.get(at..end).unwrap_or_default());
        let field = PARTS_AT.saturating_add(part.saturating_mul(PART_BYTES));
        put(bytes, field, &count.to_le_bytes());
        put(bytes, field.saturating_add(4), &checksum.to_le_bytes());
        at = end;
    }
    let checksum = crc32c::crc32c(bytes.get(..CHECKSUM_AT).unwrap_or_default());
    put(bytes, CHECKSUM_AT, &checksum.to_le_bytes());
}

/// Puts each line behind those of its part that were before it.
fn put_lines(bytes: &mut [u8], counts: &[u32; PARTS], lines: &[LineOfPart]) {
    let mut next = Vec::with_capacity(PARTS);
    let mut at = HEAD_BYTES;
    for count in counts {
        next.push(at);
        at = at.saturating_add(large(*count).saturating_mul(LINE_BYTES));
    }
    for [part, line @ ..] in lines {
        if let Some(at) = next.get_mut(usize::from(*part)) {
            put(bytes, *at, line);
            *at = at.saturating_add(LINE_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBJECT: Subject = Subject { store: StoreId([4; 16]), number: 7, end: 4_096 };

    /// Lines of all parts in a mixed order: some parts have none, some have two.
    fn lines() -> Vec<LineOfPart> {
        let line = |number: u16| {
            let mut line = [0; 1 + LINE_BYTES];
            line[0] = u8::try_from(number.wrapping_mul(37) % 256).unwrap();
            line[5..7].copy_from_slice(&number.to_le_bytes());
            line
        };
        (0..300).map(line).collect()
    }

    fn by_part() -> Vec<Vec<[u8; LINE_BYTES]>> {
        let mut parts = vec![Vec::new(); PARTS];
        for [part, line @ ..] in lines() {
            parts[usize::from(part)].push(line);
        }
        parts
    }

    fn encoded() -> Vec<u8> {
        let lines = lines();
        let mut bytes = vec![0; encoded_bytes(lines.len())];
        encode_into(&mut bytes, SUBJECT, 4_000, &lines);
        bytes
    }

    /// The lines of a hint, if all of them are whole.
    fn read(bytes: &[u8], subject: Subject) -> Option<Vec<Vec<[u8; LINE_BYTES]>>> {
        let directory = Directory::decode(bytes, subject)?;
        (0..=255)
            .map(|shard| {
                let part = directory.part(shard)?;
                let from = usize::try_from(part.at).unwrap();
                Some(part.lines(bytes.get(from..)?.get(..part.bytes())?)?.to_vec())
            })
            .collect()
    }

    #[test]
    fn a_hint_reads_back_for_its_own_segment_only() {
        let bytes = encoded();
        assert_eq!(read(&bytes, SUBJECT), Some(by_part()));
        assert_eq!(Directory::decode(&bytes, SUBJECT).unwrap().last_frame, 4_000);
        for other in [
            Subject { end: 4_104, ..SUBJECT },
            Subject { number: 8, ..SUBJECT },
            Subject { store: StoreId([5; 16]), ..SUBJECT },
        ] {
            assert_eq!(read(&bytes, other), None);
        }
    }

    #[test]
    fn a_hint_with_any_flipped_byte_or_cut_short_is_ignored() {
        let bytes = encoded();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 4;
            assert_eq!(read(&flipped, SUBJECT), None, "byte {at}");
        }
        for at in (0..bytes.len()).step_by(7) {
            assert_eq!(read(&bytes[..at], SUBJECT), None, "cut at {at}");
        }
    }
}
