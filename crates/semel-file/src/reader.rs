//! Reads records from where the index says they are.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Answer, Caching, Loaded, Page, Scan};
use semel::{Key, RecordId, Result, codec};

use crate::clock::FlooredClock;
use crate::error::{damaged, missing, unavailable, unreadable_record};
use crate::format::field::{large, put};
use crate::format::frame::{self, IndexKey, Seed, index_key, plausible_bytes};
use crate::health::Health;
use crate::index::entry::Kept;
use crate::index::{Entry, Index};
use crate::log::segments::Segments;

/// How often a record is looked for that moves while it is read, before something must be wrong.
const TRIES_MAX: usize = 64;
/// How many records a page looks at beyond the ones that it shows.
const LOOKS_MAX: usize = 4_096;

/// Everything that reading takes.
pub(crate) struct Reader {
    /// Where the store is, in words for people.
    pub(crate) place: Box<str>,
    pub(crate) index: Arc<Index>,
    pub(crate) segments: Segments,
    pub(crate) clock: FlooredClock,
    /// Whether engines may keep what they are answered.
    pub(crate) caching: Caching,
    pub(crate) health: Health,
}

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Only what is in memory: the caller's thread has others to serve.
    Cached,
    Disk,
}

/// What came of a read.
pub(crate) enum Looked<T> {
    Found(T),
    /// The disk would have to be waited for.
    NotCached,
}

/// Which record is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked<'a> {
    /// The one of this key.
    Key(&'a Key),
    /// The one with this id.
    Id(&'a RecordId),
    /// Whichever is there.
    Any,
}

impl Asked<'_> {
    fn is(&self, id: &RecordId) -> bool {
        match self {
            Self::Key(key) => key.id() == *id,
            Self::Id(asked) => *asked == id,
            Self::Any => true,
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<Record> {
        match self {
            // The asked key is shared: digesting the stored one anew costs more than all the rest.
            Self::Key(key) => codec::decode_for(bytes, key),
            Self::Id(_) | Self::Any => codec::decode(bytes),
        }
    }
}

/// What came of reading one frame.
enum Fetched {
    Bytes(Seed, Vec<u8>),
    NotCached,
    /// Its segment is gone: it has moved.
    Moved,
}

impl Reader {
    /// An answer that is given now.
    pub(crate) fn answer<T>(&self, value: T) -> Answer<T> {
        Answer::new(self.clock.now(), value).caching(self.caching)
    }

    /// The record with this id, if there is one that counts.
    pub(crate) fn load(&self, id: &RecordId, wait: Wait) -> Result<Looked<Option<Arc<Record>>>> {
        match self.index.get(&index_key(id)) {
            None => Ok(Looked::Found(None)),
            Some(entry) => self.at(&entry, Asked::Id(id), wait),
        }
    }

    /// The same, waiting for the disk if need be.
    pub(crate) fn load_from_disk(&self, id: &RecordId) -> Loaded {
        self.index.get(&index_key(id)).map_or(Ok(None), |entry| self.read(&entry, Asked::Id(id)))
    }

    /// The record at an entry, waiting for the disk if need be.
    pub(crate) fn read(&self, entry: &Entry, asked: Asked<'_>) -> Loaded {
        match self.at(entry, asked, Wait::Disk)? {
            Looked::Found(record) => Ok(record),
            Looked::NotCached => Err(self.damage(entry, "was not read")),
        }
    }

    /// The record at an entry; the one that has replaced it, if its place is gone by now.
    pub(crate) fn at(
        &self,
        entry: &Entry,
        asked: Asked<'_>,
        wait: Wait,
    ) -> Result<Looked<Option<Arc<Record>>>> {
        let mut entry = *entry;
        for _ in 0..TRIES_MAX {
            let now = self.clock.now();
            let kept = entry.kept_at(now);
            if kept == Kept::No {
                return Ok(Looked::Found(None));
            }
            match self.fetch(&entry, wait)? {
                Fetched::NotCached => return Ok(Looked::NotCached),
                Fetched::Bytes(seed, bytes) => {
                    let record = self.decode(&entry, asked, &self.frame(&entry, seed, &bytes)?, now)?;
                    return Ok(Looked::Found(record.map(Arc::new)));
                }
                Fetched::Moved => match self.moved(&entry)? {
                    Some(known) => entry = known,
                    None => return Ok(Looked::Found(None)),
                },
            }
        }
        Err(self.damage(&entry, "was moved again and again while it was read"))
    }

    /// Where a record is now whose segment is gone; `None` if it was forgotten. A segment is removed only after its
    /// records were moved or forgotten, so an entry that still points into it has lost its record, which must not pass for
    /// one that never was.
    fn moved(&self, entry: &Entry) -> Result<Option<Entry>> {
        match self.index.get(&entry.id) {
            Some(known) if known.is_at(entry) => {
                Err(missing(&self.place, &crate::format::name::segment(entry.segment)))
            }
            known => Ok(known),
        }
    }

    /// When exactly the keep of a record ends; zero if it was forgotten.
    pub(crate) fn kept_until(&self, entry: &Entry) -> Result<u64> {
        let mut entry = *entry;
        for _ in 0..TRIES_MAX {
            match self.fetch(&entry, Wait::Disk)? {
                Fetched::Bytes(seed, bytes) => return Ok(self.frame(&entry, seed, &bytes)?.head.kept_until),
                Fetched::NotCached => return Err(self.damage(&entry, "was not read")),
                Fetched::Moved => match self.moved(&entry)? {
                    Some(known) => entry = known,
                    None => return Ok(0),
                },
            }
        }
        Err(self.damage(&entry, "was moved again and again while it was read"))
    }

    fn fetch(&self, entry: &Entry, wait: Wait) -> Result<Fetched> {
        let Some(segment) = self.segments.get(entry.segment) else { return Ok(Fetched::Moved) };
        let mut bytes = vec![0; large(entry.bytes())];
        let offset = u64::from(entry.offset);
        let read = match wait {
            Wait::Cached => segment.file.read_cached_at(&mut bytes, offset),
            Wait::Disk => segment.file.read_at(&mut bytes, offset).map(Some),
        };
        match read {
            Ok(Some(read)) => {
                // The index knows the length with its padding; the frame knows it exactly.
                bytes.truncate(plausible_bytes(&bytes).map_or(read, |exact| read.min(large(exact))));
                Ok(Fetched::Bytes(segment.seed, bytes))
            }
            Ok(None) => Ok(Fetched::NotCached),
            Err(error) => Err(unavailable(&self.place, &format!("read {}", segment.name()), error)),
        }
    }

    /// The frame that these bytes must be.
    fn frame<'a>(&self, entry: &Entry, seed: Seed, bytes: &'a [u8]) -> Result<frame::Frame<'a>> {
        match frame::read(bytes, seed, entry.offset) {
            Some(found) if found.head.id == entry.id && found.head.version == entry.version => Ok(found),
            _ => Err(self.damage(entry, "does not match its checksum")),
        }
    }

    /// The record in the frame of an entry, if its keep is not over.
    pub(crate) fn decode(
        &self,
        entry: &Entry,
        asked: Asked<'_>,
        found: &frame::Frame<'_>,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        if found.head.kept_until <= now.as_micros() {
            return Ok(None);
        }
        let record = asked.decode(found.body).map_err(|why| {
            unreadable_record(&self.place, &crate::format::name::segment(entry.segment), entry.offset, why)
        })?;
        if index_key(&record.key.id()) != entry.id || record.version.get() != entry.version {
            return Err(self.damage(entry, "holds another record than it says"));
        }
        if !asked.is(&record.key.id()) {
            return Err(self.damage(entry, "holds a record whose id begins like another's"));
        }
        Ok(Some(record))
    }

    fn damage(&self, entry: &Entry, what: &str) -> semel::Error {
        let file = crate::format::name::segment(entry.segment);
        damaged(&self.place, &file, entry.offset, what)
    }

    /// A page of records. It may end early: a filter that matches little must not hold up others for long.
    pub(crate) fn scan(&self, scan: &Scan) -> Answer<Page> {
        let page = self.page(scan);
        let mut answer = self.answer(page);
        // A lease may have lapsed since its record was matched, and readers judge by the answer's now.
        let Answer { now, value, .. } = &mut answer;
        value.records.retain(|record| scan.filter.matches(record, *now));
        answer
    }

    fn page(&self, scan: &Scan) -> Page {
        let mut page = Page::default();
        let mut last = scan.after;
        let mut first = scan.after.as_ref().map(index_key);
        let mut looks_left = LOOKS_MAX.saturating_add(scan.limit);
        // One more than the page shows says whether there is a next one; a filter that matches little needs many.
        let mut wanted = scan.limit.saturating_add(1);
        loop {
            wanted = wanted.min(looks_left);
            let entries = self.index.from(first.as_ref(), &scan.filter.states, wanted);
            looks_left = looks_left.saturating_sub(entries.len());
            for entry in &entries {
                if page.records.len().saturating_add(page.damaged.len()) >= scan.limit {
                    page.next = last;
                    return page;
                }
                self.look(entry, scan, &mut page, &mut last);
            }
            let next = entries.last().filter(|_| entries.len() >= wanted).map(|entry| id_after(&entry.id));
            match next {
                Some(next @ Some(_)) if looks_left > 0 => first = next,
                Some(_) => {
                    page.next = last;
                    return page;
                }
                None => return page,
            }
            wanted = wanted.saturating_mul(4);
        }
    }

    /// Puts the record at an entry on a page, if it is to be shown.
    fn look(&self, entry: &Entry, scan: &Scan, page: &mut Page, last: &mut Option<RecordId>) {
        // Also past what is not shown, or a walk would never get beyond many of them.
        let behind = last_id_like(&entry.id);
        *last = (*last).max(Some(behind));
        match self.read(entry, Asked::Any) {
            Ok(Some(record)) => {
                let id = record.key.id();
                if scan.after.is_some_and(|after| id <= after) {
                    return;
                }
                *last = Some(id);
                if scan.filter.matches(&record, self.clock.now()) {
                    page.records.push(record);
                }
            }
            // Only half of its id is known, so the page before has shown it if that half was its last.
            Err(why) if scan.after.is_none_or(|after| behind > after) => page.damaged.push((behind, why)),
            Ok(None) | Err(_) => {}
        }
    }
}

/// The first half of an id after this one; `None` after the last.
fn id_after(id: &IndexKey) -> Option<IndexKey> {
    u128::from_be_bytes(*id).checked_add(1).map(u128::to_be_bytes)
}

/// The last id that begins like this.
fn last_id_like(id: &IndexKey) -> RecordId {
    let mut bytes = [u8::MAX; 32];
    put(&mut bytes, 0, id);
    RecordId::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use semel::ErrorKind;
    use semel::record::StateKind;
    use semel_testkit::ManualClock;

    use super::*;
    use crate::format::frame::{FOREVER, Head, Kind};

    const SECOND_MICROS: u64 = 1_000_000;

    /// A reader whose index points into segment 1, which is not there.
    fn without_segments(kept_until: u64) -> (Reader, Entry) {
        let now = Timestamp::from_micros(5 * SECOND_MICROS);
        let head =
            Head { kind: Kind::Record(StateKind::Done), version: 1, kept_until, moment: now, id: [7; 16] };
        let entry = Entry::new(1, 64, 200, &head).unwrap();
        let reader = Reader {
            place: "here".into(),
            index: Arc::new(Index::new()),
            segments: Segments::default(),
            clock: FlooredClock::new(Arc::new(ManualClock::at(now.as_micros())), now),
            caching: Caching::Refused,
            health: Health::default(),
        };
        reader.index.put(entry);
        (reader, entry)
    }

    fn assert_missing<T>(result: Result<T>) {
        let Err(error) = result else { panic!("a record whose segment is missing is not absent") };
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("00000001.log is missing"), "{error}");
    }

    #[test]
    fn a_record_in_a_missing_segment_is_damaged_and_neither_absent_nor_expired() {
        let (reader, entry) = without_segments(FOREVER);
        assert_missing(reader.read(&entry, Asked::Any));
        // In the last second of its keep, the frame itself is asked for the moment.
        let (reader, entry) = without_segments(5 * SECOND_MICROS + 1);
        assert_missing(reader.kept_until(&entry));
    }

    #[test]
    fn a_record_that_was_forgotten_together_with_its_segment_is_absent() {
        let (reader, entry) = without_segments(FOREVER);
        reader.index.remove(&entry.id);
        assert!(matches!(reader.read(&entry, Asked::Any), Ok(None)));
        assert!(matches!(reader.kept_until(&entry), Ok(0)));
    }
}
