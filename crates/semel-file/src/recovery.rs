//! From files to a store that may answer: what is whole is found, what a cut left over is cleared away, and anything else
//! refuses to open.

use std::io;
use std::sync::Arc;

use semel::clock::{Clock, Timestamp};
use semel::store::Caching;
use semel::{Error, ErrorKind, Result};

use crate::clock::FlooredClock;
use crate::disk::Disk;
use crate::error::{damaged, missing, unavailable, unreadable};
use crate::format::field::large;
use crate::format::frame::Kind;
use crate::format::header::{HEADER_BYTES, Header};
use crate::format::identity::{self, IDENTITY_BYTES, StoreId, Unreadable};
use crate::format::name::{self, Role};
use crate::format::walk::{Behind, Step, Walk, look_behind};
use crate::health::Health;
use crate::index::Entry;
use crate::loader::{Loader, Sealed};
use crate::log::maintenance::Maintenance;
use crate::log::segment::{Segment, fill_with_zeros, prepare};
use crate::log::segments::Segments;
use crate::log::spare::Wanted;
use crate::reader::Reader;
use crate::writer::{LogState, Usage};

/// What is opened, and how.
pub(crate) struct Recovery {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) place: Box<str>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether engines may keep what the store answers.
    pub(crate) caching: Caching,
    pub(crate) segment_bytes_max: u32,
    /// On how many threads the index is loaded.
    pub(crate) load_threads: usize,
}

/// A store that may answer, as soon as somebody lets its writer take turns.
pub(crate) struct Recovered {
    pub(crate) reader: Arc<Reader>,
    pub(crate) start: LogState,
    pub(crate) maintenance: Maintenance,
}

/// The segment that is written, as it was found.
struct Newest {
    segment: Segment,
    header: Option<Header>,
    frames: Frames,
}

/// What a walk through a segment found.
#[derive(Default)]
struct Frames {
    entries: Vec<Entry>,
    end: u32,
    version: u64,
    moment: Timestamp,
    oldest: u32,
}

impl Recovery {
    pub(crate) fn open(&self) -> Result<Recovered> {
        let names = self.disk.names().map_err(|error| self.cannot("list its files", error))?;
        for unfinished in names.iter().filter(|name| name::role(name) == Role::Unfinished) {
            // It is made anew under the same name if it is needed; only its room would be missed.
            drop(self.disk.remove(unfinished));
        }
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| name::segment_number(name)).collect();
        numbers.sort_unstable();
        let store = if names.iter().any(|name| name::role(name) == Role::Identity) {
            self.read_identity()?
        } else {
            self.found(&names, &mut numbers)?
        };
        let (newest, spares) = self.newest(store, &numbers)?;
        let opened = self.assemble(store, newest)?;
        clear_away(&opened, &names);
        self.give_spare(&opened, &spares)?;
        // What was named by a process that did not live to sync it is used from here on.
        self.disk.sync_names().map_err(|error| self.cannot("sync its folder", error))?;
        Ok(opened)
    }

    /// Makes a new store: first its first segment, then the identity that says that it is there.
    fn found(&self, names: &[String], numbers: &mut Vec<u32>) -> Result<StoreId> {
        let is_ours = |name: &&String| !matches!(name::role(name), Role::Unfinished | Role::Segment(1));
        if let Some(foreign) = names.iter().find(is_ours) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "{}: holds {foreign} and no {}, so it is no store; nothing was changed: give an empty folder, or \
                     bring the missing file back",
                    self.place,
                    name::IDENTITY
                ),
            ));
        }
        let store = StoreId(rand::random());
        let bytes = self.segment_bytes_max.min(crate::writer::SEGMENT_BYTES_MIN);
        prepare(&*self.disk, store, 1, bytes)
            .map_err(|error| self.cannot("make its first segment", error))?;
        *numbers = vec![1];
        self.write_identity(store).map_err(|error| self.cannot("write its identity", error))?;
        Ok(store)
    }

    fn write_identity(&self, store: StoreId) -> io::Result<()> {
        let unfinished = name::unfinished(name::IDENTITY);
        let file = self.disk.create(&unfinished)?;
        file.write_at(&identity::encode(store), 0)?;
        file.sync()?;
        self.disk.rename(&unfinished, name::IDENTITY)?;
        self.disk.sync_names()
    }

    fn read_identity(&self) -> Result<StoreId> {
        let mut bytes = [0; IDENTITY_BYTES];
        let read = self
            .disk
            .open(name::IDENTITY)
            .and_then(|file| file.read_at(&mut bytes, 0))
            .map_err(|error| self.cannot("read its identity", error))?;
        identity::decode(bytes.get(..read).unwrap_or_default())
            .map_err(|why| unreadable(&self.place, name::IDENTITY, why))
    }

    /// The segment that is written, and the ones behind it that nobody has begun.
    fn newest(&self, store: StoreId, numbers: &[u32]) -> Result<(Newest, Vec<u32>)> {
        let mut spares = Vec::new();
        for number in numbers.iter().rev().copied() {
            let segment = self.segment(store, number)?;
            if let Some(header) = self.header(store, &segment)? {
                let frames = self.tail(&segment, &header)?;
                return Ok((Newest { segment, header: Some(header), frames }, spares));
            }
            if number == 1 && numbers.first() == Some(&1) {
                // A store that was never written to: its first segment is as good as new.
                self.clear(&segment, 0)?;
                return Ok((Newest { segment, header: None, frames: Frames::default() }, spares));
            }
            spares.push(number);
        }
        Err(missing(&self.place, numbers.first().copied().unwrap_or(1)))
    }

    fn segment(&self, store: StoreId, number: u32) -> Result<Segment> {
        let file = name::segment(number);
        let opened = self.disk.open(&file).map_err(|error| self.cannot(&format!("open {file}"), error))?;
        Ok(Segment::new(store, number, opened))
    }

    /// The header of a segment; `None` if the segment was not begun, or no more than its first run was, which nobody was
    /// told about.
    fn header(&self, store: StoreId, segment: &Segment) -> Result<Option<Header>> {
        match self.read_header(store, segment)? {
            Ok(header) => Ok(Some(header)),
            Err(Unreadable::Damaged(what)) => match self.behind(segment, HEADER_BYTES)? {
                Behind::Nothing | Behind::TornBatch { .. } => Ok(None),
                Behind::LaterBatch { .. } => Err(damaged(&self.place, &segment.name(), 0, what)),
            },
            Err(why) => Err(unreadable(&self.place, &segment.name(), why)),
        }
    }

    fn read_header(
        &self,
        store: StoreId,
        segment: &Segment,
    ) -> Result<std::result::Result<Header, Unreadable>> {
        let mut bytes = vec![0; large(HEADER_BYTES)];
        let read = segment.file.read_at(&mut bytes, 0).map_err(|error| self.cannot_read(segment, error))?;
        bytes.truncate(read);
        Ok(Header::decode(&bytes, store, segment.number))
    }

    fn behind(&self, segment: &Segment, at: u32) -> Result<Behind> {
        let end = self.file_bytes(segment)?;
        look_behind(&*segment.file, segment.seed, at, end).map_err(|error| self.cannot_read(segment, error))
    }

    fn file_bytes(&self, segment: &Segment) -> Result<u32> {
        let bytes = segment.file.bytes().map_err(|error| self.cannot_read(segment, error))?;
        Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    /// The frames of the segment that is written, with whatever a cut left behind them cleared away.
    fn tail(&self, segment: &Segment, header: &Header) -> Result<Frames> {
        let end = self.file_bytes(segment)?;
        let mut frames = self.walk(segment, end)?;
        frames.moment = frames.moment.max(header.moment);
        frames.version = frames.version.max(header.first_version.saturating_sub(1));
        frames.oldest = frames.oldest.max(header.oldest);
        self.clear(segment, frames.end)?;
        Ok(frames)
    }

    /// Clears away what is behind `at`, for good, before anything is written or told: what is there then was synced by
    /// nobody, and a later opening must not find it behind new frames.
    fn clear(&self, segment: &Segment, at: u32) -> Result<()> {
        match self.behind(segment, at)? {
            Behind::Nothing => {}
            Behind::TornBatch { until } => {
                tracing::warn!(
                    segment = segment.name(),
                    at,
                    until,
                    "semel: dropped the unfinished end of the log; nobody was told that it was written"
                );
                fill_with_zeros(&*segment.file, u64::from(at), u64::from(until))
                    .map_err(|error| self.cannot("clear the unfinished end of its log", error))?;
            }
            Behind::LaterBatch { .. } => {
                let what = "is damaged before its end";
                return Err(damaged(&self.place, &segment.name(), at, what));
            }
        }
        // Also what is whole may never have been synced.
        segment.file.sync().map_err(|error| self.cannot("sync its log", error))
    }

    /// The frames of a segment, up to the first place where there is none.
    fn walk(&self, segment: &Segment, end: u32) -> Result<Frames> {
        let mut frames = Frames::default();
        let mut walk = Walk::new(&*segment.file, segment.seed, end);
        while let Step::Frame(frame) = walk.next().map_err(|error| self.cannot_read(segment, error))? {
            frames.moment = frames.moment.max(frame.head.moment);
            match frame.head.kind {
                Kind::Record(_) => {
                    frames.version = frames.version.max(frame.head.version);
                    frames.entries.extend(Entry::of_frame(segment.number, &frame));
                }
                Kind::Forget => {
                    let oldest = u32::try_from(frame.head.version).unwrap_or(u32::MAX);
                    frames.oldest = frames.oldest.max(oldest);
                }
                Kind::Closed => {}
            }
        }
        frames.end = walk.at();
        Ok(frames)
    }

    /// Puts index and usage together, from the oldest segment that is needed to the newest.
    fn assemble(&self, store: StoreId, newest: Newest) -> Result<Recovered> {
        let Newest { segment: active, header, frames } = newest;
        let active = Arc::new(active);
        let oldest = if header.is_some() { frames.oldest } else { active.number };
        let ends = self.sealed_ends(store, oldest, header.as_ref(), active.number)?;
        let sealed = (oldest..).zip(ends).map(|(number, end)| {
            let segment = Arc::new(self.segment(store, number)?);
            Ok(Sealed { segment, end })
        });
        let sealed: Vec<Sealed> = sealed.collect::<Result<_>>()?;
        let loaded = Loader { disk: &*self.disk, place: &self.place, store, threads: self.load_threads }
            .load(oldest, &sealed, frames.entries)?;
        let mut usage = Usage::starting_at(oldest);
        let segments = Segments::default();
        for Sealed { segment, end } in sealed {
            usage.open();
            usage.written(u64::from(end));
            segments.add(segment);
        }
        usage.open();
        usage.written(u64::from(frames.end));
        segments.add(Arc::clone(&active));
        for (number, live) in (oldest..).zip(loaded.live) {
            usage.add_live(number, live);
        }
        let index = Arc::new(loaded.index);
        let maintenance = Maintenance::new(Arc::clone(&self.disk), store, Arc::clone(&index));
        for Sealed { segment, end } in loaded.without_hint {
            maintenance.hint(segment, end);
        }
        let start = LogState {
            store,
            segment_bytes_max: self.segment_bytes_max,
            tail: frames.end,
            capacity: self.file_bytes(&active)?,
            active,
            previous_end: 0,
            next_version: frames.version.saturating_add(1),
            usage,
        };
        let reader = Arc::new(Reader {
            place: self.place.clone(),
            index,
            segments,
            clock: FlooredClock::new(Arc::clone(&self.clock), frames.moment),
            caching: self.caching,
            health: Health::default(),
        });
        Ok(Recovered { reader, start, maintenance })
    }

    /// Where the frames of each sealed segment end: the one behind it says so.
    fn sealed_ends(
        &self,
        store: StoreId,
        oldest: u32,
        newest: Option<&Header>,
        newest_number: u32,
    ) -> Result<Vec<u32>> {
        let mut ends = Vec::new();
        let mut end = newest.map_or(0, |header| header.previous_end);
        for number in (oldest..newest_number).rev() {
            ends.push(end);
            if self
                .disk
                .open(&name::segment(number))
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
            {
                return Err(missing(&self.place, number));
            }
            let segment = self.segment(store, number)?;
            let header = self
                .read_header(store, &segment)?
                .map_err(|why| unreadable(&self.place, &segment.name(), why))?;
            end = header.previous_end;
        }
        ends.reverse();
        Ok(ends)
    }

    /// Hands the segment behind the newest one to the maintenance, or has one made.
    fn give_spare(&self, opened: &Recovered, spares: &[u32]) -> Result<()> {
        let number = opened.start.active.number.saturating_add(1);
        for spare in spares.iter().filter(|spare| **spare != number) {
            opened.maintenance.remove(*spare);
        }
        if spares.contains(&number) {
            let segment = self.segment(opened.start.store, number)?;
            if self.behind(&segment, 0)? == Behind::Nothing {
                let bytes = self.file_bytes(&segment)?;
                opened.maintenance.has_spare(segment, bytes);
                return Ok(());
            }
        }
        let bytes = opened.start.next_segment_bytes();
        opened.maintenance.want_spare(Wanted { number, bytes });
        Ok(())
    }

    #[cold]
    fn cannot(&self, what: &str, error: io::Error) -> Error {
        unavailable(&self.place, what, error)
    }

    #[cold]
    fn cannot_read(&self, segment: &Segment, error: io::Error) -> Error {
        self.cannot(&format!("read {}", segment.name()), error)
    }
}

/// Has removed what is no longer needed and a cut, or a kill, left behind.
fn clear_away(opened: &Recovered, names: &[String]) {
    let oldest = opened.start.usage.oldest();
    for name in names {
        match name::role(name) {
            Role::Segment(number) | Role::Hint(number) if number < oldest => {
                opened.maintenance.remove(number);
            }
            Role::Segment(_) | Role::Hint(_) | Role::Identity | Role::Unfinished | Role::Foreign => {}
        }
    }
}
