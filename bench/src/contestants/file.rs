//! The store in a folder, opened as its users open it: with the settings that it has by default.

use std::path::Path;

use anyhow::Result;
use semel::clock::Clock;
pub(crate) use semel_file::FileStore;

/// Opens the store in this folder, and makes it if there is none.
pub(crate) fn open(folder: &Path) -> Result<FileStore> {
    Ok(FileStore::open(folder)?)
}

/// The same, on a clock of the caller's.
pub(crate) fn open_at(folder: &Path, clock: impl Clock) -> Result<FileStore> {
    Ok(FileStore::builder(folder).clock(clock).open()?)
}
