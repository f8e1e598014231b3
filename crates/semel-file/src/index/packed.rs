//! An entry in 38 bytes: a store holds one for every key.
//!
//! ```text
//! id 15 bytes, without the first, which is the number of the shard · version u64 · due u32
//! · 7 bytes: offset / 8 in 29 bits, padded length / 8 - 1 in 25, state in 2 · segment u32
//! ```
//!
//! All but the segment is what a hint has for a line.

use semel::record::StateKind;

use super::entry::{Due, Entry};
use crate::format::field::{chunk_at, put, u32_at, u64_at};
use crate::format::frame::{ALIGN, IndexKey};
use crate::format::hint::LINE_BYTES;

/// How many bytes a packed entry takes.
pub(super) const PACKED_BYTES: usize = LINE_BYTES + 4;
/// How many bytes of an id are packed.
pub(super) const ID_BYTES: usize = 15;

const VERSION_AT: usize = 15;
const DUE_AT: usize = 23;
const PLACE_AT: usize = 27;
const OFFSET_BITS: u32 = 29;
const LENGTH_BITS: u32 = 25;

/// A packed entry.
pub(super) type Packed = [u8; PACKED_BYTES];
/// All of a packed entry but its segment.
pub(crate) type HintLine = [u8; LINE_BYTES];

/// Which shard an id belongs to: the one of its first byte, so that a walk through the shards is in the order of ids.
pub(crate) fn shard_of([first, ..]: &IndexKey) -> u8 {
    *first
}

/// What is packed of an id.
pub(super) fn packed_id([_, rest @ ..]: &IndexKey) -> [u8; ID_BYTES] {
    *rest
}

/// The id of a packed entry, as far as it is packed.
pub(super) fn id_of(packed: &Packed) -> &[u8] {
    packed.get(..ID_BYTES).unwrap_or_default()
}

/// The due of a packed entry.
pub(super) fn due_of(packed: &Packed) -> Due {
    Due(u32_at(packed, DUE_AT))
}

impl Entry {
    pub(super) fn pack(&self) -> Packed {
        let mut packed = [0; PACKED_BYTES];
        put(&mut packed, 0, &self.line());
        put(&mut packed, LINE_BYTES, &self.segment.to_le_bytes());
        packed
    }

    pub(super) fn unpack(shard: u8, packed: &Packed) -> Self {
        let line = packed.first_chunk().copied().unwrap_or([0; LINE_BYTES]);
        Self::of_line(shard, u32_at(packed, LINE_BYTES), &line)
    }

    /// Its line in the hint of its segment.
    pub(crate) fn line(&self) -> HintLine {
        let mut line = [0; LINE_BYTES];
        put(&mut line, 0, &packed_id(&self.id));
        put(&mut line, VERSION_AT, &self.version.to_le_bytes());
        put(&mut line, DUE_AT, &self.due.0.to_le_bytes());
        let offset = u64::from(self.offset / ALIGN);
        let length = u64::from((self.bytes / ALIGN).saturating_sub(1)) << OFFSET_BITS;
        let state = code(self.state) << (OFFSET_BITS + LENGTH_BITS);
        let [place @ .., _] = (offset | length | state).to_le_bytes();
        put(&mut line, PLACE_AT, &place);
        line
    }

    /// The entry of a line in the hint of this segment, in the part of this shard.
    pub(crate) fn of_line(shard: u8, segment: u32, line: &HintLine) -> Self {
        let mut id = [shard; 16];
        put(&mut id, 1, line.first_chunk::<ID_BYTES>().unwrap_or(&[0; ID_BYTES]));
        let mut place = [0; 8];
        put(&mut place, 0, chunk_at::<7>(line, PLACE_AT).unwrap_or(&[0; 7]));
        let place = u64::from_le_bytes(place);
        let field = |shift: u32, bits: u32| {
            let value = (place >> shift) & (1_u64 << bits).wrapping_sub(1);
            u32::try_from(value).unwrap_or(0)
        };
        Self {
            version: u64_at(line, VERSION_AT),
            id,
            segment,
            offset: field(0, OFFSET_BITS).saturating_mul(ALIGN),
            bytes: field(OFFSET_BITS, LENGTH_BITS).saturating_add(1).saturating_mul(ALIGN),
            state: state(field(OFFSET_BITS + LENGTH_BITS, 2)),
            due: Due(u32_at(line, DUE_AT)),
        }
    }
}

const fn code(state: StateKind) -> u64 {
    match state {
        StateKind::Running => 0,
        StateKind::Done => 1,
        StateKind::Released => 2,
        StateKind::Held => 3,
    }
}

const fn state(code: u32) -> StateKind {
    match code {
        0 => StateKind::Running,
        1 => StateKind::Done,
        2 => StateKind::Released,
        _ => StateKind::Held,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::frame::{FRAME_BYTES_MAX, FRAME_HEAD_BYTES};

    #[test]
    fn packing_forgets_nothing_at_the_bounds_of_every_field() {
        assert_eq!(PACKED_BYTES, 38);
        let id = std::array::from_fn(|at| u8::try_from(at).unwrap() | 0xa0);
        for state in StateKind::ALL {
            for (offset, bytes) in [(64, FRAME_HEAD_BYTES), (u32::MAX - 7, FRAME_BYTES_MAX), (8, 8)] {
                for (version, segment, due) in [(0, 0, Due(0)), (u64::MAX, u32::MAX, Due::NEVER)] {
                    let entry = Entry { version, id, segment, offset, bytes, state, due };
                    let packed = entry.pack();
                    assert_eq!(Entry::unpack(shard_of(&id), &packed), entry);
                    assert_eq!((id_of(&packed), due_of(&packed)), (&id[1..], due));
                    assert_eq!(Entry::of_line(0xa0, segment, &entry.line()), entry);
                }
            }
        }
    }
}
