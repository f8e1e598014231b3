//! `semel.tail`: how far the log was acknowledged, kept outside of the log. A segment cannot prove that its own end is
//! still there; this file can.
//!
//! Two slots, each at the start of a 4 KiB block, written in turn:
//!
//! ```text
//! magic "SEMELTAL" · format u32 · store id 16 bytes · flags u32 (1 = closed cleanly) · sequence u64 · segment u32
//! · end of its frames u32 · crc32c u32 over all before it
//! ```

use super::field::{chunk_at, put, u32_at, u64_at};
use super::identity::{FORMAT, StoreId, Unreadable};

const MAGIC: [u8; 8] = *b"SEMELTAL";
const CLOSED: u32 = 1;
/// Each slot is alone in its block: a write of one cannot tear the other.
const BLOCK_BYTES: usize = 4_096;
const CHECKSUM_AT: usize = 48;
/// How long a slot is.
pub(crate) const SLOT_BYTES: usize = 52;
/// How long the file is.
pub(crate) const TAIL_BYTES: usize = 2 * BLOCK_BYTES;

/// The end of the log when a slot was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The slot with the greater one is the later.
    pub(crate) sequence: u64,
    /// The segment that was written then.
    pub(crate) segment: u32,
    /// Where its frames ended; zero if it was not begun.
    pub(crate) end: u32,
    pub(crate) stop: Stop,
}

/// Whether the store was at work or at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    NotYet,
    Clean,
}

impl Slot {
    /// The slot as bytes.
    pub(crate) fn encode(&self, id: StoreId) -> [u8; SLOT_BYTES] {
        let flags = match self.stop {
            Stop::NotYet => 0,
            Stop::Clean => CLOSED,
        };
        let mut bytes = [0; SLOT_BYTES];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 8, &FORMAT.to_le_bytes());
        put(&mut bytes, 12, &id.0);
        put(&mut bytes, 28, &flags.to_le_bytes());
        put(&mut bytes, 32, &self.sequence.to_le_bytes());
        put(&mut bytes, 40, &self.segment.to_le_bytes());
        put(&mut bytes, 44, &self.end.to_le_bytes());
        let checksum = crc32c::crc32c(bytes.get(..CHECKSUM_AT).unwrap_or_default());
        put(&mut bytes, CHECKSUM_AT, &checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8], id: StoreId) -> Result<Self, Unreadable> {
        let checksum = crc32c::crc32c(bytes.get(..CHECKSUM_AT).unwrap_or_default());
        if chunk_at::<8>(bytes, 0) != Some(&MAGIC) || checksum != u32_at(bytes, CHECKSUM_AT) {
            return Err(Unreadable::Damaged("has no slot that matches its checksum"));
        }
        // Only behind the checksum: a flipped bit must not pass for a release of the future.
        let format = u32_at(bytes, 8);
        if format > FORMAT {
            return Err(Unreadable::Newer(format));
        }
        if chunk_at::<16>(bytes, 12) != Some(&id.0) {
            return Err(Unreadable::Foreign);
        }
        Ok(Self {
            sequence: u64_at(bytes, 32),
            segment: u32_at(bytes, 40),
            end: u32_at(bytes, 44),
            stop: if u32_at(bytes, 28) & CLOSED == 0 { Stop::NotYet } else { Stop::Clean },
        })
    }

    /// Where in the file the slot of this sequence number goes.
    pub(crate) fn offset(sequence: u64) -> u64 {
        if sequence.is_multiple_of(2) { 0 } else { BLOCK_BYTES as u64 }
    }

    /// Whether something in this segment was acknowledged, or in one behind it: it cannot be a spare.
    pub(crate) fn covers(&self, segment: u32) -> bool {
        segment < self.segment || (segment == self.segment && self.end > 0)
    }

    /// Whether a log that ends here has everything that was acknowledged.
    pub(crate) fn is_reached_by(&self, segment: u32, end: u32) -> bool {
        (segment, end) >= (self.segment, self.end)
    }
}

/// The file with this slot in both places.
pub(crate) fn encode(slot: &Slot, id: StoreId) -> Vec<u8> {
    let mut bytes = vec![0; TAIL_BYTES];
    let slot = slot.encode(id);
    put(&mut bytes, 0, &slot);
    put(&mut bytes, BLOCK_BYTES, &slot);
    bytes
}

/// The later of the slots that are whole. One may be torn by a power cut, and is passed over; the file was synced with
/// two whole slots when it was made, so that a file without any, or a shorter one, was damaged.
pub(crate) fn decode(bytes: &[u8], id: StoreId) -> Result<Slot, Unreadable> {
    if bytes.len() < TAIL_BYTES {
        return Err(Unreadable::Damaged("is cut short"));
    }
    let slot = |at: usize| {
        Slot::decode(bytes.get(at..).and_then(|rest| rest.get(..SLOT_BYTES)).unwrap_or_default(), id)
    };
    match (slot(0), slot(BLOCK_BYTES)) {
        (Ok(one), Ok(other)) => Ok(if one.sequence > other.sequence { one } else { other }),
        (Ok(whole), Err(_)) | (Err(_), Ok(whole)) => Ok(whole),
        (Err(Unreadable::Damaged(_)), Err(why)) | (Err(why), Err(_)) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: StoreId = StoreId([6; 16]);

    fn slot(sequence: u64) -> Slot {
        Slot { sequence, segment: 3, end: 4_096, stop: Stop::NotYet }
    }

    fn two_slots() -> Vec<u8> {
        let mut bytes = encode(&slot(8), ID);
        put(&mut bytes, BLOCK_BYTES, &slot(9).encode(ID));
        bytes
    }

    #[test]
    fn the_later_slot_counts_and_a_torn_one_is_passed_over() {
        assert_eq!(decode(&two_slots(), ID), Ok(slot(9)));
        for at in 0..SLOT_BYTES {
            let mut torn = two_slots();
            torn[BLOCK_BYTES + at] ^= 1;
            assert_eq!(decode(&torn, ID), Ok(slot(8)), "byte {at}");
            let mut torn = two_slots();
            torn[at] ^= 1;
            assert_eq!(decode(&torn, ID), Ok(slot(9)), "byte {at}");
        }
    }

    #[test]
    fn a_file_that_is_cut_zeroed_or_foreign_is_refused() {
        for bytes in (0..TAIL_BYTES).step_by(512) {
            assert!(
                matches!(decode(&two_slots()[..bytes], ID), Err(Unreadable::Damaged(_))),
                "{bytes} bytes"
            );
        }
        assert!(matches!(decode(&[0; TAIL_BYTES], ID), Err(Unreadable::Damaged(_))));
        assert_eq!(decode(&two_slots(), StoreId([5; 16])), Err(Unreadable::Foreign));
    }

    #[test]
    fn a_clean_stop_is_told_from_work_and_slots_take_turns() {
        let closed = Slot { stop: Stop::Clean, ..slot(4) };
        assert_eq!(decode(&encode(&closed, ID), ID), Ok(closed));
        assert_eq!((Slot::offset(4), Slot::offset(5)), (0, 4_096));
    }

    #[test]
    fn a_log_reaches_a_slot_from_its_byte_on_and_in_every_later_segment() {
        for (segment, end, reaches) in
            [(3, 4_095, false), (3, 4_096, true), (4, 0, true), (2, u32::MAX, false)]
        {
            assert_eq!(slot(1).is_reached_by(segment, end), reaches, "{segment} {end}");
        }
        assert!(slot(1).covers(2) && slot(1).covers(3) && !slot(1).covers(4));
        assert!(!Slot { end: 0, ..slot(1) }.covers(3));
    }
}
