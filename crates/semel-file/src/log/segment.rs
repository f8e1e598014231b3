//! One file of the log.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::format::frame::Seed;
use crate::format::identity::StoreId;
use crate::format::name;

/// Zeros are written, and synced, in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;

/// One file of the log.
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) seed: Seed,
    pub(crate) file: Arc<dyn DiskFile>,
}

impl Segment {
    pub(crate) fn new(store: StoreId, number: u32, file: Arc<dyn DiskFile>) -> Self {
        Self { number, seed: Seed::new(store, number), file }
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        name::segment(self.number)
    }
}

/// A new segment with `bytes` of room, all of it really on disk: a sync of what is written into it later has no blocks to
/// find and no length to change, which makes it about twice as fast.
pub(crate) fn prepare(disk: &dyn Disk, store: StoreId, number: u32, bytes: u32) -> io::Result<Segment> {
    prepare_in_pieces(disk, store, number, bytes, &mut || Ok(()))
}

/// The same beside a log that is written: `between` is called after each piece, and may end it with an error.
pub(crate) fn prepare_in_pieces(
    disk: &dyn Disk,
    store: StoreId,
    number: u32,
    bytes: u32,
    between: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<Segment> {
    let (final_name, unfinished) = (name::segment(number), name::unfinished(&name::segment(number)));
    let made = disk.create(&unfinished).and_then(|file| {
        fill_and_sync(&*file, u64::from(bytes), between)?;
        disk.rename(&unfinished, &final_name)?;
        disk.sync_names()?;
        Ok(file)
    });
    match made {
        Ok(file) => Ok(Segment::new(store, number, file)),
        Err(error) => {
            // What could be written takes room that others need now. After a failed sync the file is of no use: the system
            // may take pages for written that are not. One that has its final name is replaced by the next try.
            drop(disk.remove(&unfinished));
            Err(error)
        }
    }
}

/// Fills a new file with zeros that survive a power cut. Each piece is synced by itself: a sync of the log waits behind
/// whatever the disk has still to write, which is one piece this way and not the whole segment.
fn fill_and_sync(
    file: &dyn DiskFile,
    bytes: u64,
    between: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let mut at = 0;
    while at < bytes {
        let until = at.saturating_add(PIECE_BYTES as u64).min(bytes);
        fill_with_zeros(file, at, until)?;
        file.sync()?;
        between()?;
        at = until;
    }
    Ok(())
}

/// Writes zeros from one offset up to another.
pub(crate) fn fill_with_zeros(file: &dyn DiskFile, from: u64, until: u64) -> io::Result<()> {
    let zeros = vec![0; PIECE_BYTES];
    let mut at = from;
    while at < until {
        let left = usize::try_from(until.saturating_sub(at)).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        file.write_at(zeros.get(..left).unwrap_or_default(), at)?;
        at = at.saturating_add(left as u64);
    }
    Ok(())
}
