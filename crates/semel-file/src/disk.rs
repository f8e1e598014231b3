//! The few things that the store asks of a disk. It reaches its files through this alone, so that tests can tear, reorder
//! and lose.
//!
//! - `folder`: a folder of the machine's file system, held by one process at a time. `lock`: the lock that holds it.

mod folder;
mod lock;

use std::io;
use std::sync::Arc;

pub use folder::Folder;

/// A flat set of named files.
///
/// What was written is there for every later read; it survives a power cut only after [`DiskFile::sync`], and a
/// name that was made, changed or removed only after [`Disk::sync_names`]. Until then a cut may keep or lose any part of
/// it, in any order.
pub trait Disk: Send + Sync + 'static {
    /// The names of all files, in any order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// A new, empty file; one of this name that is there loses its content.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// A file that is there.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, in one step, over whatever had that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a name. Handles that are open still read.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes every change of names so far survive a power cut.
    fn sync_names(&self) -> io::Result<()>;
}

/// One file.
pub trait DiskFile: Send + Sync + 'static {
    /// How many bytes it has.
    fn bytes(&self) -> io::Result<u64>;

    /// Fills the buffer from `offset` on; fewer bytes only at the end of the file.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The same, but only if no disk has to be waited for; `None` if one has.
    fn read_cached_at(&self, into: &mut [u8], offset: u64) -> io::Result<Option<usize>>;

    /// Writes all bytes at `offset`; the file grows if it must. After an error it is unknown which of them were written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts the file, or makes it longer with zeros that take no room.
    fn set_bytes(&self, bytes: u64) -> io::Result<()>;

    /// Makes every write so far survive a power cut.
    fn sync(&self) -> io::Result<()>;
}
