//! What is done to one file of a folder.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

/// Of files up to this size every step is taken; of larger ones every sixteenth.
const FINE_BYTES: u64 = 64 << 10;
const CUT_STEP: u64 = 512;
const ZERO_STEP: u64 = 4_096;

/// What is done to a file.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    CutTo(u64),
    ZeroedFrom(u64),
    Removed,
    SwappedWith(String),
    /// Replaced by the file of this name in an older folder.
    Older,
    Appended,
    Folder,
    LinkToNowhere,
}

impl Damage {
    /// Everything that is done to the file at `place` in the list of names.
    pub(crate) fn all(folder: &Path, older: &Path, names: &[String], place: usize) -> Vec<Self> {
        let name = &names[place];
        let bytes = fs::metadata(folder.join(name)).unwrap().len();
        let coarse = if bytes <= FINE_BYTES { 1 } else { 16 };
        let steps = |step: u64| (0..bytes).step_by(usize::try_from(step * coarse).unwrap());
        let mut all: Vec<Self> = steps(CUT_STEP).map(Self::CutTo).collect();
        all.extend(bytes.checked_sub(1).map(Self::CutTo));
        all.extend(steps(ZERO_STEP).map(Self::ZeroedFrom));
        all.extend([Self::Removed, Self::Appended, Self::Folder, Self::LinkToNowhere]);
        all.extend(names.get(place + 1).cloned().map(Self::SwappedWith));
        if older.join(name).exists() {
            all.push(Self::Older);
        }
        all
    }

    pub(crate) fn apply(&self, folder: &Path, older: &Path, name: &str) {
        let path = folder.join(name);
        let write = || OpenOptions::new().write(true).open(&path).unwrap();
        match self {
            Self::CutTo(bytes) => write().set_len(*bytes).unwrap(),
            Self::ZeroedFrom(from) => zero(&write(), *from),
            Self::Removed => fs::remove_file(&path).unwrap(),
            Self::SwappedWith(other) => {
                let aside = folder.join("aside");
                fs::rename(&path, &aside).unwrap();
                fs::rename(folder.join(other), &path).unwrap();
                fs::rename(&aside, folder.join(other)).unwrap();
            }
            Self::Older => drop(fs::copy(older.join(name), &path).unwrap()),
            Self::Appended => {
                OpenOptions::new().append(true).open(&path).unwrap().write_all(&[0x5a; 3_000]).unwrap();
            }
            Self::Folder => {
                fs::remove_file(&path).unwrap();
                fs::create_dir(&path).unwrap();
            }
            Self::LinkToNowhere => {
                fs::remove_file(&path).unwrap();
                symlink("/nowhere/at/all", &path).unwrap();
            }
        }
    }

    /// The files that a refusal may name.
    pub(crate) fn files<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        match self {
            Self::SwappedWith(other) => vec![name, other],
            _ => vec![name],
        }
    }
}

fn zero(file: &File, from: u64) {
    let bytes = file.metadata().unwrap().len() - from;
    file.write_all_at(&vec![0; usize::try_from(bytes).unwrap()], from).unwrap();
}
