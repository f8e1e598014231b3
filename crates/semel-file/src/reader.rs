//! Reads records from where the index says they are.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::{Record, StateKind};
use semel::store::{Page, Scan};
use semel::{RecordId, Result, codec};

use crate::clock::FlooredClock;
use crate::error::{damaged, unavailable};
use crate::format::field::{large, put};
use crate::format::frame::{self, HalfId, Seed, half};
use crate::health::Health;
use crate::index::entry::Kept;
use crate::index::{Entry, Index};
use crate::log::shelf::Shelf;

/// How often a record is looked for that moves while it is read, before something must be wrong.
const TRIES_MAX: usize = 64;
/// How many records a page looks at beyond the ones that it shows.
const LOOKS_MAX: usize = 4_096;

/// Everything that reading takes.
pub(crate) struct Reader {
    /// Where the store is, in words for people.
    pub(crate) place: Box<str>,
    pub(crate) index: Arc<Index>,
    pub(crate) shelf: Shelf,
    pub(crate) clock: FlooredClock,
    pub(crate) health: Health,
}

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
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

/// What came of reading one frame.
enum Fetched {
    Bytes(Seed, Vec<u8>),
    NotCached,
    /// Its segment is gone: it has moved.
    Moved,
}

impl Reader {
    /// The record with this id, if there is one that counts.
    pub(crate) fn load(&self, id: &RecordId, patience: Patience) -> Result<Looked<Option<Record>>> {
        let known = half(id);
        match self.index.get(&known) {
            None => Ok(Looked::Found(None)),
            Some(entry) => match self.at(&entry, patience)? {
                Looked::Found(Some(record)) if record.key.id() != *id => Err(self.collision(&entry)),
                looked @ (Looked::Found(_) | Looked::NotCached) => Ok(looked),
            },
        }
    }

    /// The record at an entry; the one that has replaced it, if its place is gone by now.
    pub(crate) fn at(&self, entry: &Entry, patience: Patience) -> Result<Looked<Option<Record>>> {
        let mut entry = *entry;
        for _ in 0..TRIES_MAX {
            let now = self.clock.now();
            let kept = entry.kept_at(now);
            if kept == Kept::No {
                return Ok(Looked::Found(None));
            }
            match self.fetch(&entry, patience)? {
                Fetched::NotCached => return Ok(Looked::NotCached),
                Fetched::Bytes(seed, bytes) => {
                    return self.decode(&entry, seed, &bytes, now).map(Looked::Found);
                }
                Fetched::Moved => match self.index.get(&entry.id) {
                    Some(known) => entry = known,
                    None => return Ok(Looked::Found(None)),
                },
            }
        }
        Err(damaged(&self.place, "the index", 0, "points to a segment that is not there"))
    }

    /// When exactly the keep of a record ends.
    pub(crate) fn kept_until(&self, entry: &Entry) -> Result<u64> {
        match self.fetch(entry, Patience::Disk)? {
            Fetched::Bytes(seed, bytes) => Ok(self.frame(entry, seed, &bytes)?.head.kept_until),
            Fetched::NotCached | Fetched::Moved => Ok(0),
        }
    }

    fn fetch(&self, entry: &Entry, patience: Patience) -> Result<Fetched> {
        let Some(segment) = self.shelf.get(entry.segment) else { return Ok(Fetched::Moved) };
        let mut bytes = vec![0; large(entry.bytes())];
        let offset = u64::from(entry.offset);
        let read = match patience {
            Patience::Cached => segment.file.read_cached_at(&mut bytes, offset),
            Patience::Disk => segment.file.read_at(&mut bytes, offset).map(Some),
        };
        match read {
            Ok(Some(read)) => {
                bytes.truncate(read);
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

    fn decode(&self, entry: &Entry, seed: Seed, bytes: &[u8], now: Timestamp) -> Result<Option<Record>> {
        let found = self.frame(entry, seed, bytes)?;
        if found.head.kept_until <= now.as_micros() {
            return Ok(None);
        }
        let record = codec::decode(found.body)?;
        if half(&record.key.id()) != entry.id || record.version.get() != entry.version {
            return Err(self.damage(entry, "holds another record than it says"));
        }
        Ok(Some(record))
    }

    fn damage(&self, entry: &Entry, what: &str) -> semel::Error {
        let file = crate::format::name::segment(entry.segment);
        damaged(&self.place, &file, entry.offset, what)
    }

    fn collision(&self, entry: &Entry) -> semel::Error {
        self.damage(entry, "holds a record whose id begins like another's")
    }

    /// A page of records. It may end early: a filter that matches little must not hold up others for long.
    pub(crate) fn scan(&self, scan: &Scan) -> Result<Page> {
        let first = scan.after.as_ref().map(half);
        let wanted = LOOKS_MAX.saturating_add(scan.limit);
        let entries = self.entries(scan, first.as_ref(), wanted);
        let may_be_more = entries.len() >= wanted;
        let mut page = Page::default();
        let mut last = scan.after;
        for entry in entries {
            if page.records.len() >= scan.limit {
                page.next = last;
                return Ok(page);
            }
            // Also past what is not shown, or a walk would never get beyond many of them.
            last = last.max(Some(last_id_like(&entry.id)));
            let Looked::Found(Some(record)) = self.at(&entry, Patience::Disk)? else { continue };
            let id = record.key.id();
            if scan.after.is_some_and(|after| id <= after) {
                continue;
            }
            last = Some(id);
            if scan.filter.matches(&record) {
                page.records.push(record);
            }
        }
        if may_be_more {
            page.next = last;
        }
        Ok(page)
    }

    /// The entries to look at, in their order. What runs or is held is known without a walk through all.
    fn entries(&self, scan: &Scan, first: Option<&HalfId>, wanted: usize) -> Vec<Entry> {
        let states = scan.filter.states.as_slice();
        let is_stage = |state: &StateKind| matches!(state, StateKind::Running | StateKind::Held);
        if !states.is_empty() && states.iter().all(is_stage) {
            let ids = self.index.staged_from(states, first, wanted);
            return ids.iter().filter_map(|id| self.index.get(id)).collect();
        }
        self.index.from(first, wanted)
    }
}

/// The last id that begins like this.
fn last_id_like(id: &HalfId) -> RecordId {
    let mut bytes = [u8::MAX; 32];
    put(&mut bytes, 0, id);
    RecordId::from_bytes(bytes)
}
