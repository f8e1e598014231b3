//! The writer of `semel.tail`: after each synced batch it says how far the log is acknowledged.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::format::identity::StoreId;
use crate::format::name;
use crate::format::tail::{self, Slot, Stop};

/// Says outside of the log how far it is acknowledged, so that an opening sees what a person or a tool took away.
///
/// A slot is written after the log was synced, and is not synced itself: it is only ever a lower bound. It survives
/// `kill -9`; a power cut may leave an older slot, which is a lower bound too.
pub(crate) struct Tail {
    file: Arc<dyn DiskFile>,
    store: StoreId,
    /// Of the slot that is written next.
    sequence: u64,
    is_warned: bool,
}

impl Tail {
    /// Makes the file, for good, before anything relies on it.
    pub(crate) fn create(disk: &dyn Disk, store: StoreId, segment: u32, end: u32) -> io::Result<Self> {
        let unfinished = name::unfinished(name::TAIL);
        let file = disk.create(&unfinished)?;
        let slot = Slot { sequence: 0, segment, end, stop: Stop::NotYet };
        file.write_at(&tail::encode(&slot, store), 0)?;
        file.sync()?;
        disk.rename(&unfinished, name::TAIL)?;
        disk.sync_names()?;
        Ok(Self { file, store, sequence: 1, is_warned: false })
    }

    /// Goes on behind the slot that was found in the file.
    pub(crate) fn after(file: Arc<dyn DiskFile>, store: StoreId, found: &Slot) -> Self {
        Self { file, store, sequence: found.sequence.saturating_add(1), is_warned: false }
    }

    /// Everything up to this byte of this segment is synced, and its callers are about to be answered. A failure is no
    /// reason to stop: the bound stays where it was.
    pub(crate) fn note(&mut self, segment: u32, end: u32) -> io::Result<()> {
        let slot = Slot { sequence: self.sequence, segment, end, stop: Stop::NotYet };
        let written = self.file.write_at(&slot.encode(self.store), Slot::offset(slot.sequence));
        match &written {
            Ok(()) => self.sequence = self.sequence.saturating_add(1),
            // The sequence stays: the next try must not touch the slot that is whole.
            Err(error) => self.warn(error),
        }
        written
    }

    /// The store stops cleanly with its log ending here. Both slots say so, for good.
    pub(crate) fn note_closed(&mut self, segment: u32, end: u32) -> io::Result<()> {
        for _ in 0..2 {
            let slot = Slot { sequence: self.sequence, segment, end, stop: Stop::Clean };
            self.file.write_at(&slot.encode(self.store), Slot::offset(slot.sequence))?;
            self.sequence = self.sequence.saturating_add(1);
        }
        self.file.sync()
    }

    #[cold]
    fn warn(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.is_warned, true) {
            let file = name::TAIL;
            tracing::warn!(%error, file, "semel: cannot be written; a log that is cut short may go unnoticed");
        }
    }
}
