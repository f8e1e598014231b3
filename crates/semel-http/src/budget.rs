//! How many bytes of bodies are in memory at once: bounded, whatever clients send.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bound on the bytes of bodies that are in memory.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl MemoryBudget {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicUsize::new(0), bytes_max })
    }

    /// How many bytes are reserved.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A reservation, empty as yet.
    pub(crate) fn share(self: &Arc<Self>) -> Reserved {
        Reserved { room: Some(Arc::clone(self)), bytes: 0 }
    }
}

/// Bytes reserved of a budget; given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    room: Option<Arc<MemoryBudget>>,
    bytes: usize,
}

impl Reserved {
    /// Takes more. Says whether there was room.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let Some(room) = &self.room else { return true };
        let before = room.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes = self.bytes.saturating_add(bytes);
        before.saturating_add(bytes) <= room.bytes_max
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let (Some(room), 1..) = (&self.room, self.bytes) {
            room.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_was_given_back_can_be_taken_again() {
        let room = MemoryBudget::new(100);
        let mut first = room.share();
        assert!(first.take(60));
        assert!(!room.share().take(41));
        assert!(room.share().take(40));
        drop(first);
        assert!(room.share().take(100));
    }
}
