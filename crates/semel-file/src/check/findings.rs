//! What a look at every byte of a store found.

use std::path::Path;

use semel::Result;

use super::survey::Survey;
use crate::disk::Folder;

/// What a look at every byte of a store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// How many segments there are.
    pub segments: usize,
    /// How many bytes their frames have.
    pub bytes: u64,
    /// How many whole frames.
    pub frames: u64,
    /// How many records: the last whole word on each key, the ones past their keep included.
    pub records: u64,
    /// Bytes of a last write that a crash cut off. Nobody was told about it, and the next opening drops it.
    pub unfinished_bytes: u64,
    /// What is not as it was written.
    pub damages: Vec<Damage>,
}

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// In which file.
    pub file: String,
    /// Where it begins.
    pub offset: u64,
    /// How many bytes up to the next whole frame, or to the end.
    pub bytes: u64,
    /// What is wrong.
    pub what: String,
}

impl Findings {
    /// Whether everything that was ever acknowledged is there.
    pub fn is_whole(&self) -> bool {
        self.damages.is_empty()
    }

    pub(crate) fn damage(&mut self, file: &str, offset: u32, until: u32, what: impl Into<String>) {
        self.damages.push(Damage {
            file: file.to_owned(),
            offset: u64::from(offset),
            bytes: u64::from(until.saturating_sub(offset)),
            what: what.into(),
        });
    }
}

/// Reads every byte of the store in a folder and says what is whole and what is not. Changes nothing, and needs the
/// folder for itself. `see` is told how many segments were looked at, and how many there are.
pub fn verify(path: impl AsRef<Path>, mut see: impl FnMut(usize, usize)) -> Result<Findings> {
    let path = path.as_ref();
    let folder = Folder::hold_existing(path)?;
    Ok(Survey::of(&folder, &path.display().to_string(), &mut see)?.findings)
}
