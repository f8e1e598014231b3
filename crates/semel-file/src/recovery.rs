//! From files to a store that may answer: what is whole is found, what a cut left over is cleared away, and anything else
//! refuses to open.

use std::io;
use std::sync::Arc;

use semel::clock::{Clock, Timestamp};
use semel::store::Caching;
use semel::{Error, ErrorKind, Result};

use crate::clock::FlooredClock;
use crate::disk::{Disk, DiskFile};
use crate::error::{damaged, lost, missing, shortened, unavailable, unreadable};
use crate::format::field::large;
use crate::format::frame::Kind;
use crate::format::header::{HEADER_BYTES, Header};
use crate::format::identity::{self, IDENTITY_BYTES, StoreId, Unreadable};
use crate::format::name::{self, Role};
use crate::format::tail::{self, Slot, TAIL_BYTES};
use crate::format::walk::{Behind, Step, Walk, look_behind};
use crate::health::Health;
use crate::index::Entry;
use crate::loader::{Loader, Sealed};
use crate::log::appender::{LogState, SEGMENT_BYTES_MIN};
use crate::log::maintenance::Maintenance;
use crate::log::segment::{Segment, fill_with_zeros, prepare};
use crate::log::segments::Segments;
use crate::log::spare::WantedSegment;
use crate::log::tail::Tail;
use crate::log::usage::Usage;
use crate::reader::Reader;

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

/// A store that may answer as soon as its writer takes turns.
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
    /// The segments behind it that were not begun, in falling order.
    spares: Vec<u32>,
}

/// `semel.tail` as it was found.
struct Witness {
    file: Arc<dyn DiskFile>,
    slot: Slot,
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

impl Newest {
    /// The oldest segment that is needed.
    fn oldest(&self) -> u32 {
        if self.header.is_some() { self.frames.oldest } else { self.segment.number }
    }
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
        let witness = self.read_tail(store, &names)?;
        let mut newest = self.newest(store, &numbers, witness.as_ref().map(|witness| &witness.slot))?;
        let ends = self.sealed_ends(store, &newest)?;
        // Only from here on is anything changed.
        if newest.header.is_none() && self.file_bytes(&newest.segment)? < self.segment_bytes_min() {
            newest.segment = self.make_first_segment(store)?;
        }
        self.clear(&newest.segment, newest.frames.end)?;
        let spares = newest.spares.clone();
        let witness = self.go_on_with_tail(store, witness, &newest)?;
        let opened = self.assemble(store, newest, ends, witness)?;
        clear_away(&opened, &names);
        self.give_spare(&opened, &spares)?;
        // What was named by a process that did not live to sync it is used from here on.
        self.disk.sync_names().map_err(|error| self.cannot("sync its folder", error))?;
        Ok(opened)
    }

    /// Makes a new store: first its first segment and its tail, then the identity that says that they are there.
    fn found(&self, names: &[String], numbers: &mut Vec<u32>) -> Result<StoreId> {
        let is_other =
            |name: &&String| !matches!(name::role(name), Role::Unfinished | Role::Segment(1) | Role::Tail);
        let first = name::segment(1);
        let begun = || names.iter().find(|name| **name == first && self.is_begun(name));
        if let Some(foreign) = names.iter().find(is_other).or_else(begun) {
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
        self.make_first_segment(store)?;
        Tail::create(&*self.disk, store, 1, 0).map_err(|error| self.cannot("make semel.tail", error))?;
        *numbers = vec![1];
        self.write_identity(store).map_err(|error| self.cannot("write its identity", error))?;
        Ok(store)
    }

    /// Whether a segment has the header of any store. The first one of a store that is being made has none: the identity
    /// comes before the first record.
    fn is_begun(&self, name: &str) -> bool {
        let mut bytes = vec![0; large(HEADER_BYTES)];
        let read = self.disk.open(name).and_then(|file| file.read_at(&mut bytes, 0));
        read.is_err() || Header::store(&bytes).is_some()
    }

    fn make_first_segment(&self, store: StoreId) -> Result<Segment> {
        prepare(&*self.disk, store, 1, self.segment_bytes_min())
            .map_err(|error| self.cannot("make its first segment", error))
    }

    /// No segment is made shorter than this.
    fn segment_bytes_min(&self) -> u32 {
        self.segment_bytes_max.min(SEGMENT_BYTES_MIN)
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
            .map_err(|error| self.cannot(&format!("read {}", name::IDENTITY), error))?;
        identity::decode(bytes.get(..read).unwrap_or_default())
            .map_err(|why| unreadable(&self.place, name::IDENTITY, why))
    }

    /// How far the log was acknowledged; `None` if the file that says so is missing, as it is in folders of 0.1.
    fn read_tail(&self, store: StoreId, names: &[String]) -> Result<Option<Witness>> {
        if !names.iter().any(|name| name::role(name) == Role::Tail) {
            return Ok(None);
        }
        let mut bytes = vec![0; TAIL_BYTES];
        let cannot = |error| self.cannot(&format!("read {}", name::TAIL), error);
        let file = self.disk.open(name::TAIL).map_err(cannot)?;
        let read = file.read_at(&mut bytes, 0).map_err(cannot)?;
        let slot = tail::decode(bytes.get(..read).unwrap_or_default(), store)
            .map_err(|why| unreadable(&self.place, name::TAIL, why))?;
        Ok(Some(Witness { file, slot }))
    }

    /// The tail from here on: the one that was found, or a new one for a folder of 0.1.
    fn go_on_with_tail(&self, store: StoreId, found: Option<Witness>, newest: &Newest) -> Result<Tail> {
        let (segment, end) = (newest.segment.number, newest.frames.end);
        let Some(Witness { file, slot }) = found else {
            return Tail::create(&*self.disk, store, segment, end)
                .map_err(|error| self.cannot(&format!("make {}", name::TAIL), error));
        };
        let mut tail = Tail::after(file, store, &slot);
        // What was found is synced by now. A bound that cannot be raised is still a bound.
        drop(tail.note(segment, end));
        Ok(tail)
    }

    /// The segment that is written, with everything that was acknowledged, and the spares behind it.
    fn newest(&self, store: StoreId, numbers: &[u32], slot: Option<&Slot>) -> Result<Newest> {
        let newest = self.last_begun(store, numbers, slot)?;
        let number = newest.segment.number;
        if let Some(gap) =
            (number..).skip(1).zip(newest.spares.iter().rev()).find(|(wanted, is)| wanted != *is)
        {
            return Err(self.missing_segment(gap.0));
        }
        match slot {
            Some(slot) if number < slot.segment => Err(self.missing_segment(slot.segment)),
            Some(slot) if !slot.is_reached_by(number, newest.frames.end) => {
                Err(lost(&self.place, number, newest.frames.end, slot.end))
            }
            None if newest.header.is_some_and(|header| header.capacity > 0) => {
                Err(missing(&self.place, name::TAIL))
            }
            Some(_) | None => Ok(newest),
        }
    }

    fn last_begun(&self, store: StoreId, numbers: &[u32], slot: Option<&Slot>) -> Result<Newest> {
        let mut spares = Vec::new();
        for number in numbers.iter().rev().copied() {
            let segment = self.segment(store, number)?;
            if let Some(header) = self.header(store, &segment)? {
                let frames = self.tail(&segment, &header)?;
                return Ok(Newest { segment, header: Some(header), frames, spares });
            }
            match slot {
                Some(slot) if slot.segment == number && slot.covers(number) => {
                    return Err(lost(&self.place, number, 0, slot.end));
                }
                Some(slot) if slot.covers(number) => return Err(self.missing_segment(slot.segment)),
                Some(_) | None => {}
            }
            if number == 1 {
                // A store that was never written to: its first segment is as good as new.
                return Ok(Newest { segment, header: None, frames: Frames::default(), spares });
            }
            spares.push(number);
        }
        let before_spares = spares.last().map_or(1, |first| first.saturating_sub(1));
        Err(self.missing_segment(slot.map_or(before_spares, |slot| slot.segment)))
    }

    #[cold]
    fn missing_segment(&self, number: u32) -> Error {
        missing(&self.place, &name::segment(number))
    }

    fn segment(&self, store: StoreId, number: u32) -> Result<Segment> {
        let file = name::segment(number);
        match self.disk.open(&file) {
            Ok(opened) => Ok(Segment::new(store, number, opened)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(&self.place, &file)),
            Err(error) => Err(self.cannot(&format!("open {file}"), error)),
        }
    }

    /// The header of a segment; `None` if the segment was not begun, or no more than its first batch was, which
    /// was never acknowledged.
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

    /// The frames of the segment that is written.
    fn tail(&self, segment: &Segment, header: &Header) -> Result<Frames> {
        let end = self.file_bytes(segment)?;
        self.check_length(segment, end, header.capacity)?;
        let mut frames = self.walk(segment, end)?;
        frames.moment = frames.moment.max(header.moment);
        frames.version = frames.version.max(header.first_version.saturating_sub(1));
        frames.oldest = frames.oldest.max(header.oldest);
        Ok(frames)
    }

    /// Refuses a file that has fewer bytes than it once had.
    fn check_length(&self, segment: &Segment, bytes: u32, wanted_bytes: u32) -> Result<()> {
        if bytes < wanted_bytes {
            return Err(shortened(&self.place, &segment.name(), bytes, wanted_bytes));
        }
        Ok(())
    }

    /// Clears away what is behind `at`, for good, before anything is written or answered: it was never synced, and a later
    /// opening must not find it behind new frames.
    fn clear(&self, segment: &Segment, at: u32) -> Result<()> {
        match self.behind(segment, at)? {
            Behind::Nothing => {}
            Behind::TornBatch { until } => {
                tracing::warn!(
                    segment = segment.name(),
                    at,
                    until,
                    "semel: dropped the unfinished end of the log; it was never acknowledged"
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
    fn assemble(&self, store: StoreId, newest: Newest, ends: Vec<u32>, witness: Tail) -> Result<Recovered> {
        let oldest = newest.oldest();
        let Newest { segment: active, frames, .. } = newest;
        let active = Arc::new(active);
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
            witness,
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

    /// Where the frames of each sealed segment end: the one behind it says so. Each is as long as it was.
    fn sealed_ends(&self, store: StoreId, newest: &Newest) -> Result<Vec<u32>> {
        let mut ends = Vec::new();
        let mut end = newest.header.map_or(0, |header| header.previous_end);
        for number in (newest.oldest()..newest.segment.number).rev() {
            ends.push(end);
            let segment = self.segment(store, number)?;
            let header = self
                .read_header(store, &segment)?
                .map_err(|why| unreadable(&self.place, &segment.name(), why))?;
            self.check_length(&segment, self.file_bytes(&segment)?, header.capacity.max(end))?;
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
            let bytes = self.file_bytes(&segment)?;
            if bytes >= self.segment_bytes_min() && self.behind(&segment, 0)? == Behind::Nothing {
                opened.maintenance.has_spare(segment, bytes);
                return Ok(());
            }
        }
        let bytes = opened.start.next_segment_bytes();
        opened.maintenance.want_spare(WantedSegment { number, bytes });
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
            Role::Segment(_)
            | Role::Hint(_)
            | Role::Identity
            | Role::Tail
            | Role::Unfinished
            | Role::Foreign => {}
        }
    }
}
