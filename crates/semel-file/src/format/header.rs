//! How a segment begins. It is written together with the first frames behind it: until then the segment is a spare.
//!
//! ```text
//! magic "SEMELLOG" · format u32 · number u32 · store id 16 bytes · first version u64 · moment u64 · oldest u32
//! · previous end u32 · capacity u32 · crc32c u32 over all before it
//! ```

use semel::clock::Timestamp;

use super::field::{chunk_at, put, u32_at, u64_at};
use super::identity::{FORMAT, StoreId, Unreadable};

const MAGIC: [u8; 8] = *b"SEMELLOG";
/// How long a header is, and where the first frame begins.
pub(crate) const HEADER_BYTES: u32 = 64;

/// What a segment says about itself and about the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Which one it is. They are numbered without a gap.
    pub(crate) number: u32,
    /// Every version before this segment is smaller.
    pub(crate) first_version: u64,
    /// The store's now when it was begun; no stamp before it is later.
    pub(crate) moment: Timestamp,
    /// The oldest segment that was still needed then. Older ones may be there, but count no more.
    pub(crate) oldest: u32,
    /// Where the frames of the segment before it end, exactly. Zero if there is none.
    pub(crate) previous_end: u32,
    /// How long the file was made before it was begun; it may grow, and is never shorter. Zero in segments of 0.1.
    pub(crate) capacity: u32,
}

impl Header {
    /// The header as bytes.
    pub(crate) fn encode(&self, id: StoreId) -> [u8; 64] {
        let mut bytes = [0; 64];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 8, &FORMAT.to_le_bytes());
        put(&mut bytes, 12, &self.number.to_le_bytes());
        put(&mut bytes, 16, &id.0);
        put(&mut bytes, 32, &self.first_version.to_le_bytes());
        put(&mut bytes, 40, &self.moment.as_micros().to_le_bytes());
        put(&mut bytes, 48, &self.oldest.to_le_bytes());
        put(&mut bytes, 52, &self.previous_end.to_le_bytes());
        put(&mut bytes, 56, &self.capacity.to_le_bytes());
        let checksum = crc32c::crc32c(bytes.get(..60).unwrap_or_default());
        put(&mut bytes, 60, &checksum.to_le_bytes());
        bytes
    }

    /// Which store the header in these bytes belongs to, for a reader without an identity.
    pub(crate) fn store(bytes: &[u8]) -> Option<StoreId> {
        let store = StoreId(*chunk_at(bytes, 16)?);
        Self::decode(bytes, store, u32_at(bytes, 12)).ok().map(|_| store)
    }

    /// The header in these bytes, if it is this store's for this number.
    pub(crate) fn decode(bytes: &[u8], id: StoreId, number: u32) -> Result<Self, Unreadable> {
        if chunk_at::<8>(bytes, 0) != Some(&MAGIC) {
            return Err(Unreadable::Damaged("does not start with the magic of a segment"));
        }
        let checksum = crc32c::crc32c(bytes.get(..60).unwrap_or_default());
        if checksum != u32_at(bytes, 60) || bytes.len() < 64 {
            return Err(Unreadable::Damaged("has a header that does not match its checksum"));
        }
        // Only behind the checksum: a flipped bit must not pass for a release of the future.
        let format = u32_at(bytes, 8);
        if format > FORMAT {
            return Err(Unreadable::Newer(format));
        }
        if chunk_at::<16>(bytes, 16) != Some(&id.0) {
            return Err(Unreadable::Foreign);
        }
        let written_for = u32_at(bytes, 12);
        if written_for != number {
            return Err(Unreadable::Misplaced(written_for));
        }
        Ok(Self {
            number,
            first_version: u64_at(bytes, 32),
            moment: Timestamp::from_micros(u64_at(bytes, 40)),
            oldest: u32_at(bytes, 48),
            previous_end: u32_at(bytes, 52),
            capacity: u32_at(bytes, 56),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: StoreId = StoreId([9; 16]);

    fn header() -> Header {
        let moment = Timestamp::from_micros(77);
        Header {
            number: 3,
            first_version: 1 << 40,
            moment,
            oldest: 2,
            previous_end: 4_096,
            capacity: 1 << 20,
        }
    }

    #[test]
    fn a_header_reads_back_for_its_own_store_and_number_only() {
        let bytes = header().encode(ID);
        assert_eq!(Header::decode(&bytes, ID, 3), Ok(header()));
        assert_eq!(Header::decode(&bytes, StoreId([8; 16]), 3), Err(Unreadable::Foreign));
        assert_eq!(Header::decode(&bytes, ID, 4), Err(Unreadable::Misplaced(3)));
        assert!(matches!(Header::decode(&bytes[..60], ID, 3), Err(Unreadable::Damaged(_))));
    }

    #[test]
    fn every_flipped_byte_of_a_header_is_damage_and_never_a_newer_format() {
        for at in 0..64 {
            let mut bytes = header().encode(ID);
            bytes[at] ^= 0x80;
            assert!(matches!(Header::decode(&bytes, ID, 3), Err(Unreadable::Damaged(_))), "byte {at}");
        }
    }
}
