//! One frame of the log: a record, or a note of the log about itself.
//!
//! ```text
//! crc32c u32 · bytes u32 · batch start u32 · kind u8 · zero ×3 · version u64 · kept until u64 · moment u64
//! · first half of the record's id, 16 bytes · the encoded record · zeros up to a multiple of eight
//! ```
//!
//! The checksum covers the store, the segment and the offset too: bytes that are right, but in the wrong place, are
//! wrong. The batch is the one write, followed by one sync, that the frame was part of: a frame of a later batch
//! proves that everything before that batch was synced.

use semel::RecordId;
use semel::clock::Timestamp;
use semel::record::StateKind;

use super::field::{chunk_at, large, put, small, u32_at, u64_at};
use super::identity::StoreId;

/// What stands before the encoded record.
pub(crate) const FRAME_HEAD_BYTES: u32 = 56;
/// Frames start at multiples of this.
pub(crate) const ALIGN: u32 = 8;
/// More than any record may take, and few enough bytes that offsets and lengths fit their fields.
pub(crate) const FRAME_BYTES_MAX: u32 = 256 << 20;
/// The keep of what is never swept.
pub(crate) const FOREVER: u64 = u64::MAX;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A record in this state.
    Record(StateKind),
    /// Segments before the number in `version` are needed no more.
    Forget,
    /// The store was closed: everything before this was synced.
    Closed,
}

/// The first half of a record's id: enough to tell records apart, and checked against the whole when one is read.
pub(crate) type IndexKey = [u8; 16];

/// The half of the id that frames and the index carry.
pub(crate) fn index_key(id: &RecordId) -> IndexKey {
    let [half, _] = id.as_bytes().as_chunks::<16>().0 else { return [0; 16] };
    *half
}

/// What a frame says beside the record itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// The version of a record; of a note, the number that it is about.
    pub(crate) version: u64,
    /// In microseconds, or [`FOREVER`].
    pub(crate) kept_until: u64,
    /// The store's now when it was written.
    pub(crate) moment: Timestamp,
    pub(crate) id: IndexKey,
}

/// A frame as it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) head: Head,
    /// Where it begins in its segment.
    pub(crate) offset: u32,
    /// How long it is, without the padding behind it.
    pub(crate) bytes: u32,
    /// The encoded record; empty for a note.
    pub(crate) body: &'a [u8],
}

/// What the checksums of a segment start from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(u32);

impl Seed {
    pub(crate) fn new(id: StoreId, segment: u32) -> Self {
        Self(crc32c::crc32c_append(crc32c::crc32c(&id.0), &segment.to_le_bytes()))
    }

    fn checksum(self, offset: u32, covered: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c_append(self.0, &offset.to_le_bytes()), covered)
    }
}

/// Appends a frame to a batch that began at `batch_start`; `offset` is where in the segment the frame will be. The body
/// must fit [`FRAME_BYTES_MAX`]. Returns the length of the frame without its padding.
pub(crate) fn push(
    batch: &mut Vec<u8>,
    seed: Seed,
    batch_start: u32,
    offset: u32,
    head: &Head,
    body: &[u8],
) -> u32 {
    let at = batch.len();
    let bytes = FRAME_HEAD_BYTES.saturating_add(small(body.len()));
    batch.extend_from_slice(&[0; 4]);
    batch.extend_from_slice(&bytes.to_le_bytes());
    batch.extend_from_slice(&batch_start.to_le_bytes());
    batch.extend_from_slice(&[tag(head.kind), 0, 0, 0]);
    batch.extend_from_slice(&head.version.to_le_bytes());
    batch.extend_from_slice(&head.kept_until.to_le_bytes());
    batch.extend_from_slice(&head.moment.as_micros().to_le_bytes());
    batch.extend_from_slice(&head.id);
    batch.extend_from_slice(body);
    let checksum = seed.checksum(offset, batch.get(at.saturating_add(4)..).unwrap_or_default());
    put(batch, at, &checksum.to_le_bytes());
    batch.resize(at.saturating_add(large(padded(bytes))), 0);
    bytes
}

/// How long a frame is with its padding.
pub(crate) fn padded(bytes: u32) -> u32 {
    bytes.checked_next_multiple_of(ALIGN).unwrap_or(u32::MAX)
}

/// How long the frame is that seems to begin here; `None` if none can.
pub(crate) fn plausible_bytes(head: &[u8]) -> Option<u32> {
    let bytes = u32_at(head, 4);
    (FRAME_HEAD_BYTES..=FRAME_BYTES_MAX).contains(&bytes).then_some(bytes)
}

/// The frame in exactly these bytes, if they are as they were written.
pub(crate) fn read(bytes: &[u8], seed: Seed, offset: u32) -> Option<Frame<'_>> {
    if is_whole(bytes, seed, offset) { view(bytes, offset) } else { None }
}

/// Whether these bytes are a frame as it was written here.
pub(crate) fn is_whole(bytes: &[u8], seed: Seed, offset: u32) -> bool {
    plausible_bytes(bytes).is_some_and(|length| large(length) == bytes.len())
        && bytes.get(4..).is_some_and(|covered| seed.checksum(offset, covered) == u32_at(bytes, 0))
}

/// The frame in bytes that [are whole](is_whole).
pub(crate) fn view(bytes: &[u8], offset: u32) -> Option<Frame<'_>> {
    let (kind, zeros) = chunk_at::<4>(bytes, 12)?.split_first()?;
    if *zeros != [0; 3] {
        return None;
    }
    let head = Head {
        kind: kind_of(*kind)?,
        version: u64_at(bytes, 16),
        kept_until: u64_at(bytes, 24),
        moment: Timestamp::from_micros(u64_at(bytes, 32)),
        id: *chunk_at(bytes, 40)?,
    };
    let body = bytes.get(large(FRAME_HEAD_BYTES)..)?;
    Some(Frame { head, offset, bytes: small(bytes.len()), body })
}

const fn tag(kind: Kind) -> u8 {
    match kind {
        Kind::Record(StateKind::Running) => 1,
        Kind::Record(StateKind::Done) => 2,
        Kind::Record(StateKind::Released) => 3,
        Kind::Record(StateKind::Held) => 4,
        Kind::Forget => 16,
        Kind::Closed => 17,
    }
}

const fn kind_of(tag: u8) -> Option<Kind> {
    match tag {
        1 => Some(Kind::Record(StateKind::Running)),
        2 => Some(Kind::Record(StateKind::Done)),
        3 => Some(Kind::Record(StateKind::Released)),
        4 => Some(Kind::Record(StateKind::Held)),
        16 => Some(Kind::Forget),
        17 => Some(Kind::Closed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head {
            kind: Kind::Record(StateKind::Held),
            version: 5,
            kept_until: FOREVER,
            moment: Timestamp::from_micros(11),
            id: [3; 16],
        }
    }

    #[test]
    fn a_frame_reads_back_in_its_own_place_only() {
        let seed = Seed::new(StoreId([1; 16]), 2);
        let mut batch = Vec::new();
        let bytes = push(&mut batch, seed, 64, 72, &head(), b"twelve bytes");
        assert_eq!((bytes, batch.len()), (68, 72));
        let frame = read(&batch[..68], seed, 72).unwrap();
        assert_eq!((frame.head, frame.body), (head(), b"twelve bytes".as_slice()));
        assert_eq!((frame.offset, frame.bytes), (72, 68));
        assert!(read(&batch[..68], seed, 80).is_none());
        assert!(read(&batch[..68], Seed::new(StoreId([1; 16]), 3), 72).is_none());
        assert!(read(&batch[..68], Seed::new(StoreId([2; 16]), 2), 72).is_none());
        assert!(read(&batch[..67], seed, 72).is_none());
    }

    #[test]
    fn every_flipped_byte_of_a_frame_is_seen() {
        let seed = Seed::new(StoreId([1; 16]), 2);
        let mut batch = Vec::new();
        push(&mut batch, seed, 64, 64, &head(), b"body");
        for at in 0..60 {
            let mut flipped = batch.clone();
            flipped[at] ^= 0x10;
            assert!(read(&flipped[..60], seed, 64).is_none(), "byte {at}");
        }
    }

    #[test]
    fn every_kind_has_a_tag_of_its_own() {
        let kinds = StateKind::ALL.map(Kind::Record).into_iter().chain([Kind::Forget, Kind::Closed]);
        for kind in kinds {
            assert_eq!(kind_of(tag(kind)), Some(kind));
        }
        assert_eq!((0..=u8::MAX).filter_map(kind_of).count(), 6);
    }
}
