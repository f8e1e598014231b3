//! One file of the log.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::format::frame::Seed;
use crate::format::identity::StoreId;
use crate::format::name;

/// Zeros are written in pieces of this size.
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
    let (final_name, unfinished) = (name::segment(number), name::unfinished(&name::segment(number)));
    let made = disk.create(&unfinished).and_then(|file| {
        fill_with_zeros(&*file, 0, u64::from(bytes))?;
        file.sync()?;
        Ok(file)
    });
    let file = match made {
        Ok(file) => file,
        Err(error) => {
            // What could be written takes room that others need now.
            drop(disk.remove(&unfinished));
            return Err(error);
        }
    };
    disk.rename(&unfinished, &final_name)?;
    disk.sync_names()?;
    Ok(Segment::new(store, number, file))
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
