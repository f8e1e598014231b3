//! What a sealed segment has alive, so that opening need not read the segment. Only a help: one that is missing or
//! damaged is made anew from the segment itself.
//!
//! ```text
//! magic "SEMELHNT" · format u32 · number u32 · store id 16 bytes · end of the frames u32 · count u32
//! · count × (id 16 bytes · version u64 · offset u32 · bytes and state u32 · due u32) · crc32c u32 over all before it
//! ```

use super::field::{chunk_at, large, small, u32_at, u64_at};
use super::frame::IndexKey;
use super::identity::{FORMAT, StoreId};

const MAGIC: [u8; 8] = *b"SEMELHNT";
const HEAD_BYTES: usize = 40;
const LINE_BYTES: usize = 36;

/// One record that is alive in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) id: IndexKey,
    pub(crate) version: u64,
    pub(crate) offset: u32,
    /// Length and state, as the index packs them.
    pub(crate) size: u32,
    pub(crate) due: u32,
}

/// The hint for a segment whose frames end at `end`.
pub(crate) fn encode(id: StoreId, number: u32, end: u32, lines: &[Line]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES.saturating_add(lines.len().saturating_mul(LINE_BYTES)));
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&id.0);
    bytes.extend_from_slice(&end.to_le_bytes());
    bytes.extend_from_slice(&small(lines.len()).to_le_bytes());
    for line in lines {
        bytes.extend_from_slice(&line.id);
        bytes.extend_from_slice(&line.version.to_le_bytes());
        bytes.extend_from_slice(&line.offset.to_le_bytes());
        bytes.extend_from_slice(&line.size.to_le_bytes());
        bytes.extend_from_slice(&line.due.to_le_bytes());
    }
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The lines of a hint, if it is whole and speaks of exactly this segment.
pub(crate) fn decode(bytes: &[u8], id: StoreId, number: u32, end: u32) -> Option<impl Iterator<Item = Line>> {
    let (covered, checksum) = bytes.split_last_chunk::<4>()?;
    let head: &[u8; HEAD_BYTES] = chunk_at(covered, 0)?;
    let lines = covered.get(HEAD_BYTES..)?;
    let is_ours = chunk_at::<8>(head, 0) == Some(&MAGIC)
        && u32_at(head, 8) == FORMAT
        && u32_at(head, 12) == number
        && chunk_at::<16>(head, 16) == Some(&id.0)
        && u32_at(head, 32) == end
        && large(u32_at(head, 36)).checked_mul(LINE_BYTES) == Some(lines.len())
        && crc32c::crc32c(covered) == u32::from_le_bytes(*checksum);
    is_ours.then(|| lines.as_chunks::<LINE_BYTES>().0.iter().map(line))
}

fn line(bytes: &[u8; LINE_BYTES]) -> Line {
    Line {
        id: chunk_at(bytes, 0).copied().unwrap_or_default(),
        version: u64_at(bytes, 16),
        offset: u32_at(bytes, 24),
        size: u32_at(bytes, 28),
        due: u32_at(bytes, 32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: StoreId = StoreId([4; 16]);

    fn lines() -> Vec<Line> {
        (1..4).map(|n| Line { id: [n; 16], version: u64::from(n), offset: 64, size: 99, due: 5 }).collect()
    }

    #[test]
    fn a_hint_reads_back_for_its_own_segment_only() {
        let bytes = encode(ID, 7, 4_096, &lines());
        let read: Vec<_> = decode(&bytes, ID, 7, 4_096).unwrap().collect();
        assert_eq!(read, lines());
        assert!(decode(&bytes, ID, 7, 4_104).is_none());
        assert!(decode(&bytes, ID, 8, 4_096).is_none());
        assert!(decode(&bytes, StoreId([5; 16]), 7, 4_096).is_none());
    }

    #[test]
    fn a_hint_with_any_flipped_byte_or_cut_short_is_ignored() {
        let bytes = encode(ID, 7, 4_096, &lines());
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 4;
            assert!(decode(&flipped, ID, 7, 4_096).is_none(), "byte {at}");
            assert!(decode(&bytes[..at], ID, 7, 4_096).is_none(), "cut at {at}");
        }
    }
}
