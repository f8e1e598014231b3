//! Reads every byte of a store, steps over what is damaged, and changes nothing.

use std::collections::HashMap;
use std::io;

use semel::{Error, ErrorKind, Result, codec};

use super::{Damage, Findings};
use crate::disk::Disk;
use crate::error::unavailable;
use crate::format::field::{large, small};
use crate::format::frame::{self, ALIGN, Frame, Head, IndexKey, Kind, Seed, padded, plausible_bytes};
use crate::format::header::{HEADER_BYTES, Header};
use crate::format::identity::{self, IDENTITY_BYTES, StoreId, Unreadable};
use crate::format::name::{self, Role};
use crate::format::tail::{self, Slot, TAIL_BYTES};
use crate::format::walk::{Behind, look_behind};
use crate::log::segment::Segment;

/// What is said of a name that stands for no file.
const NO_FILE: &str = "is not a file";

/// The last whole word on a record, and where it is.
pub(super) struct Word {
    pub(super) head: Head,
    pub(super) segment: u32,
    pub(super) offset: u32,
    pub(super) bytes: u32,
}

impl Word {
    fn place(&self) -> (u32, u32) {
        (self.segment, self.offset)
    }

    /// Of two words on a record, the one that is further on in the log and has the smaller version: there must be none.
    fn outdated<'a>(&'a self, other: &'a Self) -> Option<&'a Self> {
        let (earlier, later) = if self.place() < other.place() { (self, other) } else { (other, self) };
        (later.head.version < earlier.head.version).then_some(later)
    }
}

/// Everything that was read.
pub(super) struct Survey<'a> {
    disk: &'a dyn Disk,
    place: &'a str,
    pub(super) store: StoreId,
    pub(super) findings: Findings,
    pub(super) words: HashMap<IndexKey, Word>,
    /// The greatest version that was seen.
    pub(super) version: u64,
    /// The oldest segment that is needed, as far as is known.
    oldest: u32,
    /// How far the log was acknowledged, if that can be read.
    slot: Option<Slot>,
}

/// Where the frames of a segment end.
#[derive(Clone, Copy)]
enum Ends {
    /// Exactly here: the segment behind it says so.
    At(u32),
    /// It is the newest: with the last whole frame, and not before what was acknowledged.
    Open,
    /// The segment behind it cannot be read, so it is unknown.
    Unknown,
}

impl<'a> Survey<'a> {
    /// Looks at every byte; `see` is told how many segments were looked at, and how many there are.
    pub(super) fn of(disk: &'a dyn Disk, place: &'a str, see: &mut dyn FnMut(usize, usize)) -> Result<Self> {
        let names = disk.names().map_err(|error| unavailable(place, "list its files", error))?;
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| name::segment_number(name)).collect();
        numbers.sort_unstable();
        let mut findings = Findings::default();
        let store = store_id(disk, place, &numbers, &mut findings)?;
        let slot = read_tail(disk, place, store, &names, &mut findings)?;
        let mut survey =
            Self { disk, place, store, findings, words: HashMap::new(), version: 0, oldest: 1, slot };
        let mut ends = Ends::Open;
        let last = numbers.last().copied().unwrap_or(0);
        let mut expected = slot.filter(|slot| slot.segment > last).map(|slot| slot.segment);
        // From the newest on: it says which are the oldest that count.
        for (looked, number) in numbers.iter().copied().rev().enumerate() {
            if number < survey.oldest {
                break;
            }
            if survey.missing_between(number, expected) {
                ends = Ends::Unknown;
            }
            ends = survey.segment(number, ends)?;
            expected = number.checked_sub(1);
            see(looked.saturating_add(1), numbers.len());
        }
        survey.missing_between(survey.oldest.saturating_sub(1), expected);
        survey.findings.records = survey.words.len() as u64;
        Ok(survey)
    }

    /// Every number from `expected` down to `found`, without `found`, has no file; whether there is one.
    fn missing_between(&mut self, found: u32, expected: Option<u32>) -> bool {
        let Some(expected) = expected else { return false };
        let missing = found.saturating_add(1).max(self.oldest)..=expected;
        for number in missing.clone() {
            self.findings.damage(&name::segment(number), 0, 0, "is missing");
        }
        !missing.is_empty()
    }

    /// Looks at one segment; says where the one before it ends.
    fn segment(&mut self, number: u32, ends: Ends) -> Result<Ends> {
        let file_name = name::segment(number);
        let Some((segment, content)) = self.content(number)? else {
            return Ok(Ends::Unknown);
        };
        let header = Header::decode(&content, self.store, number);
        if matches!(header, Err(Unreadable::Damaged(_))) && self.may_be_spare(&segment, &content, ends)? {
            return Ok(Ends::Open);
        }
        match &header {
            Ok(header) => {
                self.oldest = self.oldest.max(header.oldest);
                self.version = self.version.max(header.first_version);
                self.has_tail(header);
                let has = small(content.len());
                if has < header.capacity {
                    self.findings.damage(&file_name, has, header.capacity, "is cut short");
                }
            }
            Err(why) => self.findings.damage(&file_name, 0, HEADER_BYTES, unreadable_word(*why)),
        }
        self.findings.segments = self.findings.segments.saturating_add(1);
        self.frames(&segment, &content, ends);
        Ok(header.map_or(Ends::Unknown, |header| Ends::At(header.previous_end)))
    }

    /// The bytes of a segment; `None` if it is no file, which is a finding.
    fn content(&mut self, number: u32) -> Result<Option<(Segment, Vec<u8>)>> {
        let file_name = name::segment(number);
        let cannot = |error: io::Error| unavailable(self.place, &format!("read {file_name}"), error);
        let file = match self.disk.open(&file_name) {
            Ok(file) => file,
            Err(error) if is_no_file(&error) => {
                self.findings.damage(&file_name, 0, 0, NO_FILE);
                return Ok(None);
            }
            Err(error) => return Err(cannot(error)),
        };
        let mut content = vec![0; usize::try_from(file.bytes().map_err(cannot)?).unwrap_or(0)];
        let read = file.read_at(&mut content, 0).map_err(cannot)?;
        content.truncate(read);
        Ok(Some((Segment::new(self.store, number, file), content)))
    }

    /// Whether a segment without a whole header was not begun yet, or only with a first run that was never acknowledged.
    fn may_be_spare(&self, segment: &Segment, content: &[u8], ends: Ends) -> Result<bool> {
        let was_begun = self.slot.is_some_and(|slot| slot.covers(segment.number));
        if was_begun || !matches!(ends, Ends::Open) {
            return Ok(false);
        }
        let behind = look_behind(&*segment.file, segment.seed, HEADER_BYTES, small(content.len()))
            .map_err(|error| unavailable(self.place, &format!("read {}", segment.name()), error))?;
        Ok(!matches!(behind, Behind::LaterBatch { .. }))
    }

    /// A segment that says how long it was made is of a release that writes a tail.
    fn has_tail(&mut self, header: &Header) {
        let is_known = |damage: &Damage| damage.file == name::TAIL;
        if self.slot.is_none() && header.capacity > 0 && !self.findings.damages.iter().any(is_known) {
            self.findings.damage(name::TAIL, 0, 0, "is missing");
        }
    }

    /// Up to which byte of this segment the log was acknowledged, as far as is known.
    fn acknowledged(&self, segment: u32) -> u32 {
        self.slot.filter(|slot| slot.segment == segment).map_or(0, |slot| slot.end)
    }

    fn frames(&mut self, segment: &Segment, content: &[u8], ends: Ends) {
        let end = match ends {
            Ends::At(end) => end.min(small(content.len())),
            Ends::Open | Ends::Unknown => small(content.len()),
        };
        let wanted = match ends {
            Ends::At(end) => end,
            Ends::Open | Ends::Unknown => self.acknowledged(segment.number),
        };
        let mut at = HEADER_BYTES;
        while at < end {
            if let Some(found) = whole_at(content, segment.seed, at, end) {
                self.take(segment, &found);
                at = at.saturating_add(padded(found.bytes));
                continue;
            }
            let next = next_whole(content, segment.seed, at, end);
            if next.is_none() && at < wanted && is_zeros(content, at, end) {
                break;
            }
            if at >= wanted && !matches!(ends, Ends::At(_)) {
                if next.is_none() && is_zeros(content, at, end) {
                    break;
                }
                if matches!(ends, Ends::Open) && !proves_sync(segment, at, end) {
                    self.unfinished(last_byte(content, at, end).saturating_sub(at));
                    break;
                }
            }
            let until = next.unwrap_or(end);
            self.findings.damage(&segment.name(), at, until, "does not match its checksum");
            at = until;
        }
        if at < wanted {
            self.findings.damage(&segment.name(), at, wanted, "is cut short");
        }
        self.findings.bytes = self.findings.bytes.saturating_add(u64::from(at));
    }

    fn unfinished(&mut self, bytes: u32) {
        self.findings.unfinished_bytes = self.findings.unfinished_bytes.saturating_add(u64::from(bytes));
    }

    fn take(&mut self, segment: &Segment, found: &Frame<'_>) {
        self.findings.frames = self.findings.frames.saturating_add(1);
        match found.head.kind {
            Kind::Closed => return,
            Kind::Forget => {
                self.oldest = self.oldest.max(u32::try_from(found.head.version).unwrap_or(0));
                return;
            }
            Kind::Record(_) => {}
        }
        if let Err(error) = codec::decode(found.body) {
            let until = found.offset.saturating_add(found.bytes);
            self.findings.damage(&segment.name(), found.offset, until, error.to_string());
            return;
        }
        self.version = self.version.max(found.head.version);
        let word =
            Word { head: found.head, segment: segment.number, offset: found.offset, bytes: found.bytes };
        let known = self.words.get(&found.head.id);
        if let Some(outdated) = known.and_then(|known| known.outdated(&word)) {
            let (file, offset) = (name::segment(outdated.segment), outdated.offset);
            let until = offset.saturating_add(outdated.bytes);
            self.findings.damage(&file, offset, until, "holds a record that is older than one before it");
        }
        if known.is_none_or(|known| known.place() < word.place()) {
            self.words.insert(found.head.id, word);
        }
    }
}

/// The store's id: from its identity, or, if that is damaged, from any header that is whole.
fn store_id(disk: &dyn Disk, place: &str, numbers: &[u32], findings: &mut Findings) -> Result<StoreId> {
    let mut bytes = [0; IDENTITY_BYTES];
    let why = match disk.open(name::IDENTITY).and_then(|file| file.read_at(&mut bytes, 0)) {
        Ok(read) => match identity::decode(bytes.get(..read).unwrap_or_default()) {
            Ok(store) => return Ok(store),
            Err(why) => unreadable_word(why),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => "is missing".to_owned(),
        Err(error) if is_no_file(&error) => NO_FILE.to_owned(),
        Err(error) => return Err(unavailable(place, "read its identity", error)),
    };
    for number in numbers {
        let mut bytes = vec![0; large(HEADER_BYTES)];
        let read = disk.open(&name::segment(*number)).and_then(|file| file.read_at(&mut bytes, 0));
        if let Some(store) = read.ok().and_then(|_| Header::store(&bytes)) {
            findings.damage(name::IDENTITY, 0, small(IDENTITY_BYTES), why);
            return Ok(store);
        }
    }
    let message = format!(
        "{place}: {} {why}, and there is no segment, so it is no store; give the folder of one",
        name::IDENTITY
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// How far the log was acknowledged. A folder of 0.1 has no file that says so.
fn read_tail(
    disk: &dyn Disk,
    place: &str,
    store: StoreId,
    names: &[String],
    findings: &mut Findings,
) -> Result<Option<Slot>> {
    if !names.iter().any(|name| name::role(name) == Role::Tail) {
        return Ok(None);
    }
    let mut bytes = vec![0; TAIL_BYTES];
    let why = match disk.open(name::TAIL).and_then(|file| file.read_at(&mut bytes, 0)) {
        Ok(read) => match tail::decode(bytes.get(..read).unwrap_or_default(), store) {
            Ok(slot) => return Ok(Some(slot)),
            Err(why) => unreadable_word(why),
        },
        Err(error) if is_no_file(&error) => NO_FILE.to_owned(),
        Err(error) => return Err(unavailable(place, &format!("read {}", name::TAIL), error)),
    };
    findings.damage(name::TAIL, 0, small(TAIL_BYTES), why);
    Ok(None)
}

/// Whether the name stands for something else than a file: a folder, or a link to nowhere.
fn is_no_file(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::IsADirectory | io::ErrorKind::NotFound)
}

fn unreadable_word(why: Unreadable) -> String {
    match why {
        Unreadable::Damaged(what) => what.to_owned(),
        Unreadable::Newer(format) => format!("has format {format}, which this release cannot read"),
        Unreadable::Foreign => "belongs to another store".to_owned(),
        Unreadable::Misplaced(number) => format!("holds segment {}", name::segment(number)),
    }
}

fn whole_at(content: &[u8], seed: Seed, at: u32, end: u32) -> Option<Frame<'_>> {
    let rest = content.get(large(at)..large(end))?;
    let bytes = plausible_bytes(rest)?;
    frame::read(rest.get(..large(bytes))?, seed, at)
}

fn next_whole(content: &[u8], seed: Seed, after: u32, end: u32) -> Option<u32> {
    let offsets = (after.saturating_add(ALIGN)..end).step_by(large(ALIGN));
    offsets.into_iter().find(|offset| whole_at(content, seed, *offset, end).is_some())
}

/// Whether something behind `at` could only be written after what is at `at` was synced.
fn proves_sync(segment: &Segment, at: u32, end: u32) -> bool {
    let behind = look_behind(&*segment.file, segment.seed, at, end);
    behind.is_ok_and(|behind| matches!(behind, Behind::LaterBatch { .. }))
}

fn is_zeros(content: &[u8], at: u32, end: u32) -> bool {
    last_byte(content, at, end) == at
}

/// Behind the last byte that is not zero; `at` if all are.
fn last_byte(content: &[u8], at: u32, end: u32) -> u32 {
    let rest = content.get(large(at)..large(end)).unwrap_or_default();
    let last = rest.iter().rposition(|byte| *byte != 0);
    last.map_or(at, |last| at.saturating_add(small(last)).saturating_add(1))
}
