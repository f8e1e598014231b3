//! For the day when a store does not open: what is whole, what is damaged, and a copy of what is whole.
//!
//! - [`verify`](verify()): reads every byte and changes none. [`repair`](repair()): copies what is whole into a new store.
//! - [`Findings`]: what was found. `survey`: the reading that both do.

mod survey;

use std::path::Path;
use std::sync::Arc;

use semel::clock::SystemClock;
use semel::store::Caching;
use semel::{Error, ErrorKind, Result};

use self::survey::{Survey, Word};
use crate::disk::{Disk, Folder};
use crate::error::unavailable;
use crate::format::field::large;
use crate::format::frame::FRAME_HEAD_BYTES;
use crate::format::name;
use crate::recovery::Recovery;
use crate::writer::Writer;

/// How far versions jump: what was damaged may have had greater ones than what is left, and none may be handed out again.
const VERSIONS_SKIPPED: u64 = 1 << 32;
/// How large the segments of the copy become.
const SEGMENT_BYTES: u32 = 64 << 20;

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
    /// Bytes of a last write that a crash cut off. It was never acknowledged, and the next opening drops it.
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

/// Copies the last whole word on every record of one store into a new one, whose folder must be empty or missing. The
/// damaged store is only read. What was damaged is missing in the copy: a record may be back in an earlier state, so the
/// findings deserve to be read. `see` is told how many segments were looked at, and how many there are.
pub fn repair(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    mut see: impl FnMut(usize, usize),
) -> Result<Findings> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let damaged = Folder::hold_existing(from)?;
    let place = from.display().to_string();
    let survey = Survey::of(&damaged, &place, &mut see)?;
    let folder = Folder::hold(to)?;
    let to_place: Box<str> = to.display().to_string().into();
    let taken = folder.names().map_err(|error| unavailable(&to_place, "list its files", error))?;
    if let Some(name) = taken.first() {
        let message = format!("{to_place}: holds {name}; nothing was changed: give an empty folder");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let opening = Recovery {
        disk: Arc::new(folder),
        place: to_place,
        clock: Arc::new(SystemClock::new()),
        caching: Caching::Refused,
        segment_bytes_max: SEGMENT_BYTES,
        load_threads: 1,
    };
    let mut opened = opening.open()?;
    opened.start.next_version = survey.version.saturating_add(VERSIONS_SKIPPED);
    let mut copy = Writer::new(opened.reader, opened.maintenance.inline(), opened.start);
    let mut words: Vec<&Word> = survey.words.values().collect();
    // In the order of the log, so that the copy ages as the original did.
    words.sort_unstable_by_key(|word| (word.segment, word.offset));
    for word in words {
        let body = read_body(&damaged, &place, word)?;
        copy.copy(&word.head, &body)?;
    }
    copy.close()?;
    Ok(survey.findings)
}

fn read_body(disk: &dyn Disk, place: &str, word: &Word) -> Result<Vec<u8>> {
    let file_name = name::segment(word.segment);
    let mut body = vec![0; large(word.bytes.saturating_sub(FRAME_HEAD_BYTES))];
    let offset = u64::from(word.offset.saturating_add(FRAME_HEAD_BYTES));
    disk.open(&file_name)
        .and_then(|file| file.read_at(&mut body, offset))
        .map_err(|error| unavailable(place, &format!("read {file_name}"), error))?;
    Ok(body)
}
