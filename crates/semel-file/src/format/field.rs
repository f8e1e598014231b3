//! Numbers in bytes, little-endian everywhere.

/// The four bytes at `at` as a number; zero behind the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    chunk_at(bytes, at).map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

/// The eight bytes at `at` as a number; zero behind the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    chunk_at(bytes, at).map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// The bytes from `at` on, if there are enough.
pub(crate) fn chunk_at<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..).and_then(<[u8]>::first_chunk::<N>)
}

/// Writes over what is at `at`; the place must be there.
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at.saturating_add(field.len())) {
        place.copy_from_slice(field);
    }
}

/// A length or an offset of something that fits into a segment; segments are smaller than 4 GiB.
pub(crate) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The same the other way round.
pub(crate) fn large(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
