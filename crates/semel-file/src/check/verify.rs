//! Reads every byte of a store and changes none.

use std::path::Path;

use semel::Result;

use super::findings::Findings;
use super::survey::Survey;
use crate::disk::Folder;

/// Reads every byte of the store in a folder and says what is whole and what is not. Changes nothing, and needs the
/// folder for itself. `see` is told how many segments were looked at, and how many there are.
pub fn verify(path: impl AsRef<Path>, mut see: impl FnMut(usize, usize)) -> Result<Findings> {
    let path = path.as_ref();
    let folder = Folder::hold_existing(path)?;
    Ok(Survey::of(&folder, &path.display().to_string(), &mut see)?.findings)
}
