//! Zeroed memory that goes back to the system at once when it is dropped. An allocator keeps what lies between two pieces
//! that are still in use, and after a sweep of millions of records that is most of it.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// Less than this comes from the allocator: a mapping takes whole pages.
const MAPPED_BYTES_MIN: usize = 4_096;

/// Zeroed memory. Pages of a mapping that were never written take no room.
pub(crate) enum Memory {
    Mapped(MmapMut),
    Allocated(Box<[u8]>),
}

impl Memory {
    pub(crate) fn zeroed(bytes: usize) -> Self {
        if bytes >= MAPPED_BYTES_MIN
            && let Ok(mapped) = MmapMut::map_anon(bytes)
        {
            return Self::Mapped(mapped);
        }
        // Also where the system allows no more mappings: the allocator joins many into one.
        Self::Allocated(vec![0; bytes].into())
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::Allocated(Box::default())
    }
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(mapped) => mapped,
            Self::Allocated(bytes) => bytes,
        }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Mapped(mapped) => mapped,
            Self::Allocated(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_every_size_is_zeroed_and_can_be_written() {
        for bytes in [0, 1, 4_095, 4_096, 77_824] {
            let mut memory = Memory::zeroed(bytes);
            assert_eq!(memory.len(), bytes);
            assert!(memory.iter().all(|byte| *byte == 0));
            memory.fill(7);
            assert!(memory.iter().all(|byte| *byte == 7));
        }
        assert!(matches!(Memory::zeroed(4_096), Memory::Mapped(_)), "large memory is mapped");
    }
}
