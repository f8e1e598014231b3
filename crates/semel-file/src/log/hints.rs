//! A sealed segment's hint: written when the segment is full, read when the store is opened.

use std::io;

use crate::disk::Disk;
use crate::format::hint::{self, Line};
use crate::format::identity::StoreId;
use crate::format::name;
use crate::format::walk::{Step, Walk};
use crate::index::{Entry, Index};
use crate::log::segment::Segment;

/// Writes down what a sealed segment has alive. What was replaced was replaced by something that is on disk further on, so
/// nobody will miss it. What was forgotten is written down all the same: without it, an earlier word on the same record, in
/// a segment before this one, would be its last.
pub(crate) fn write(
    disk: &dyn Disk,
    store: StoreId,
    segment: &Segment,
    end: u32,
    index: &Index,
) -> io::Result<()> {
    let mut lines = Vec::new();
    let mut walk = Walk::new(&*segment.file, segment.seed, end);
    while let Step::Frame(frame) = walk.next()? {
        let Some(found) = Entry::of_frame(segment.number, &frame) else { continue };
        if index.get(&found.id).is_none_or(|known| known.is_at(&found)) {
            lines.push(found.line());
        }
    }
    if walk.at() != end {
        // A hint would hide the damage; without one, the next opening finds it.
        return Err(io::Error::other(format!("{} is damaged at byte {}", segment.name(), walk.at())));
    }
    let (final_name, unfinished) =
        (name::hint(segment.number), name::unfinished(&name::hint(segment.number)));
    let file = disk.create(&unfinished)?;
    file.write_at(&hint::encode(store, segment.number, end, &lines), 0)?;
    file.sync()?;
    disk.rename(&unfinished, &final_name)
}

/// What a sealed segment had alive, if there is a hint that says so.
pub(crate) fn read(disk: &dyn Disk, store: StoreId, number: u32, end: u32) -> Option<Vec<Line>> {
    let file = disk.open(&name::hint(number)).ok()?;
    let mut bytes = vec![0; usize::try_from(file.bytes().ok()?).ok()?];
    let read = file.read_at(&mut bytes, 0).ok()?;
    bytes.truncate(read);
    Some(hint::decode(&bytes, store, number, end)?.collect())
}
