//! Loads the index at opening: shard by shard, so that memory stays local, from hints where there are any, and on two
//! threads.

use std::sync::Arc;

use semel::Result;

use crate::disk::Disk;
use crate::error::{damaged, unavailable};
use crate::format::identity::StoreId;
use crate::format::name;
use crate::format::walk::{Step, Walk};
use crate::index::{Entry, Index, SHARDS, Shard, shard_of};
use crate::log::hints::Hint;
use crate::log::segment::Segment;
use crate::threads::on_threads;

/// Loads the index.
pub(crate) struct Loader<'a> {
    pub(crate) disk: &'a dyn Disk,
    /// Where the store is, in words for people.
    pub(crate) place: &'a str,
    pub(crate) store: StoreId,
    /// On how many threads.
    pub(crate) threads: usize,
}

/// A sealed segment, and where its frames end.
#[derive(Clone)]
pub(crate) struct Sealed {
    pub(crate) segment: Arc<Segment>,
    pub(crate) end: u32,
}

/// What was loaded.
pub(crate) struct Loaded {
    pub(crate) index: Index,
    /// What counts in each segment, the oldest first and the newest last.
    pub(crate) live: Vec<Live>,
    /// The sealed segments without a hint that can be used.
    pub(crate) without_hint: Vec<Sealed>,
}

/// What counts in one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

/// Where the entries of a segment come from.
enum EntrySource {
    Hint(Hint),
    Frames(Frames),
}

/// The entries of all frames of a segment, by shard, and within a shard in the order of the log.
#[derive(Default)]
struct Frames(Vec<Entry>);

/// Why a shard could not be loaded.
enum LoadFailure {
    /// The lines of this sealed segment's hint are damaged.
    Hint(usize),
    Store(semel::Error),
}

impl Loader<'_> {
    /// Loads what sealed segments, the oldest first, and then the newest have.
    pub(crate) fn load(&self, oldest: u32, sealed: &[Sealed], newest: Vec<Entry>) -> Result<Loaded> {
        let sources = on_threads(self.threads, sealed.len(), |at| match sealed.get(at) {
            Some(sealed) => self.source(sealed),
            None => Ok(EntrySource::Frames(Frames::default())),
        });
        let mut sources: Vec<EntrySource> = sources.into_iter().collect::<Result<_>>()?;
        sources.push(EntrySource::Frames(Frames::new(newest)));
        loop {
            match self.load_from(oldest, &sources) {
                Ok((index, live)) => {
                    let is_walked = |(source, sealed): (&EntrySource, &Sealed)| {
                        matches!(source, EntrySource::Frames(_)).then(|| sealed.clone())
                    };
                    let without_hint = sources.iter().zip(sealed).filter_map(is_walked).collect();
                    return Ok(Loaded { index, live, without_hint });
                }
                Err(LoadFailure::Store(error)) => return Err(error),
                // Each failure makes one hint fewer, so this ends.
                Err(LoadFailure::Hint(at)) => {
                    if let (Some(source), Some(sealed)) = (sources.get_mut(at), sealed.get(at)) {
                        *source = EntrySource::Frames(self.walk(sealed)?);
                    }
                }
            }
        }
    }

    fn source(&self, sealed: &Sealed) -> Result<EntrySource> {
        match Hint::open(self.disk, self.store, &sealed.segment, sealed.end) {
            Some(hint) => Ok(EntrySource::Hint(hint)),
            None => self.walk(sealed).map(EntrySource::Frames),
        }
    }

    fn walk(&self, sealed: &Sealed) -> Result<Frames> {
        let Sealed { segment, end } = sealed;
        let cannot_read = |error| unavailable(self.place, &format!("read {}", segment.name()), error);
        let mut walk = Walk::new(&*segment.file, segment.seed, *end);
        let mut entries = Vec::new();
        while let Step::Frame(frame) = walk.next().map_err(cannot_read)? {
            entries.extend(Entry::of_frame(segment.number, &frame));
        }
        if walk.at() != *end {
            return Err(damaged(self.place, &segment.name(), walk.at(), "does not match its checksum"));
        }
        Ok(Frames::new(entries))
    }

    fn load_from(
        &self,
        oldest: u32,
        sources: &[EntrySource],
    ) -> std::result::Result<(Index, Vec<Live>), LoadFailure> {
        let index = Index::new();
        let shards = on_threads(self.threads, SHARDS, |number| {
            let number = u8::try_from(number).unwrap_or(u8::MAX);
            self.load_shard(&index, number, oldest, sources)
        });
        let mut live = vec![Live::default(); sources.len()];
        for of_shard in shards {
            for (all, more) in live.iter_mut().zip(of_shard?) {
                all.records = all.records.saturating_add(more.records);
                all.bytes = all.bytes.saturating_add(more.bytes);
            }
        }
        Ok((index, live))
    }

    /// Loads one shard, and says what of it counts in each segment.
    fn load_shard(
        &self,
        index: &Index,
        number: u8,
        oldest: u32,
        sources: &[EntrySource],
    ) -> std::result::Result<Vec<Live>, LoadFailure> {
        let Some(mut shard) = index.shard(number) else { return Ok(Vec::new()) };
        shard.reserve(sources.iter().map(|source| source.entry_count(number)).sum());
        let mut buffer = Vec::new();
        for ((at, source), segment) in sources.iter().enumerate().zip(oldest..) {
            match source {
                EntrySource::Hint(hint) => {
                    let lines = hint.lines(number, &mut buffer).ok_or(LoadFailure::Hint(at))?;
                    let entries = lines.iter().map(|line| Entry::of_line(number, segment, line));
                    self.put_all(&mut shard, entries)?;
                }
                EntrySource::Frames(frames) => self.put_all(&mut shard, frames.of(number).iter().copied())?,
            }
        }
        shard.fit();
        Ok(live_in(&shard, oldest, sources.len()))
    }

    fn put_all(
        &self,
        shard: &mut Shard,
        entries: impl Iterator<Item = Entry>,
    ) -> std::result::Result<(), LoadFailure> {
        for entry in entries {
            if shard.put(&entry).is_some_and(|replaced| replaced.version > entry.version) {
                let file = name::segment(entry.segment);
                let what = "holds a record that is older than one before it";
                return Err(LoadFailure::Store(damaged(self.place, &file, entry.offset, what)));
            }
        }
        Ok(())
    }
}

impl EntrySource {
    fn entry_count(&self, shard: u8) -> usize {
        match self {
            Self::Hint(hint) => hint.line_count(shard),
            Self::Frames(frames) => frames.of(shard).len(),
        }
    }
}

impl From<semel::Error> for LoadFailure {
    fn from(error: semel::Error) -> Self {
        Self::Store(error)
    }
}

impl Frames {
    fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_unstable_by_key(|entry| (shard_of(&entry.id), entry.offset));
        Self(entries)
    }

    /// The entries of one shard.
    fn of(&self, shard: u8) -> &[Entry] {
        let start = self.0.partition_point(|entry| shard_of(&entry.id) < shard);
        let rest = self.0.get(start..).unwrap_or_default();
        let count = rest.partition_point(|entry| shard_of(&entry.id) == shard);
        rest.get(..count).unwrap_or_default()
    }
}

/// What of a shard counts in each of so many segments.
fn live_in(shard: &Shard, oldest: u32, segments: usize) -> Vec<Live> {
    let mut live = vec![Live::default(); segments];
    for entry in shard.entries() {
        let at = entry.segment.checked_sub(oldest).and_then(|at| usize::try_from(at).ok());
        if let Some(live) = at.and_then(|at| live.get_mut(at)) {
            live.records = live.records.saturating_add(1);
            live.bytes = live.bytes.saturating_add(u64::from(entry.bytes()));
        }
    }
    live
}
