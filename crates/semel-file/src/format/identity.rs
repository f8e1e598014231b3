//! `semel.store`: which store this folder is, so that a file of another one is never taken for its own.
//!
//! ```text
//! magic "SEMELSTO" · format u32 · store id 16 bytes · crc32c u32 over all before it
//! ```

use super::field::{chunk_at, put, u32_at};

/// The format that this release writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 1;

const MAGIC: [u8; 8] = *b"SEMELSTO";
/// How long the identity is.
pub(crate) const IDENTITY_BYTES: usize = 32;

/// The random name of a store. It goes into every checksum of its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreId(pub(crate) [u8; 16]);

/// Why an identity, a header or a slot of the tail cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is not what was once written there.
    Damaged(&'static str),
    /// It was written by a newer release, in this format.
    Newer(u32),
    /// It belongs to another store.
    Foreign,
    /// It is the header of another segment, with this number.
    Misplaced(u32),
}

/// The identity as bytes.
pub(crate) fn encode(id: StoreId) -> [u8; IDENTITY_BYTES] {
    let mut bytes = [0; IDENTITY_BYTES];
    put(&mut bytes, 0, &MAGIC);
    put(&mut bytes, 8, &FORMAT.to_le_bytes());
    put(&mut bytes, 12, &id.0);
    let checksum = crc32c::crc32c(bytes.get(..28).unwrap_or_default());
    put(&mut bytes, 28, &checksum.to_le_bytes());
    bytes
}

/// The store id in an identity.
pub(crate) fn decode(bytes: &[u8]) -> Result<StoreId, Unreadable> {
    if chunk_at::<8>(bytes, 0) != Some(&MAGIC) {
        return Err(Unreadable::Damaged("does not start with the magic of a store"));
    }
    let checksum = crc32c::crc32c(bytes.get(..28).unwrap_or_default());
    if bytes.len() != IDENTITY_BYTES || checksum != u32_at(bytes, 28) {
        return Err(Unreadable::Damaged("does not match its checksum"));
    }
    // Only behind the checksum: a flipped bit must not pass for a release of the future.
    let format = u32_at(bytes, 8);
    if format > FORMAT {
        return Err(Unreadable::Newer(format));
    }
    chunk_at(bytes, 12).map(|id| StoreId(*id)).ok_or(Unreadable::Damaged("is cut short"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_reads_back_and_every_flipped_byte_is_seen() {
        let identity = encode(StoreId([7; 16]));
        assert_eq!(decode(&identity), Ok(StoreId([7; 16])));
        for at in 0..identity.len() {
            let mut flipped = identity;
            flipped[at] ^= 1;
            assert!(decode(&flipped).is_err(), "byte {at}");
        }
        assert!(decode(&identity[..31]).is_err());
        assert!(decode(&[]).is_err());
    }
}
