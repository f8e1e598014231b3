//! All records that count, in the order of the log: many times faster than page by page in the order of ids, because the
//! disk is read from front to back and each megabyte once.

use std::collections::BTreeMap;
use std::sync::Arc;

use semel::Result;
use semel::clock::Timestamp;
use semel::record::Record;

use crate::format::walk::{Step, Walk};
use crate::index::{Entry, SHARDS};
use crate::log::segment::Segment;
use crate::reader::{Asked, Reader};
use crate::threads::on_threads;

/// On how many threads records are read and decoded.
const THREADS: usize = 2;
/// How many records are shown at a time.
const SHOWN_AT_ONCE: usize = 512;

/// Some of the records that [`FileStore::visit`](crate::FileStore::visit) found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Visited {
    /// Those that can be read. Records past their retention may be among them.
    pub records: Vec<Arc<Record>>,
    /// How many there are besides that cannot be read.
    pub damaged: usize,
    /// The store's now when they were read.
    pub now: Timestamp,
}

/// Shows what it is given, some at a time.
struct VisitBuffer<'a, F: Fn(Visited)> {
    reader: &'a Reader,
    see: &'a F,
    next: Visited,
}

impl<F: Fn(Visited)> VisitBuffer<'_, F> {
    fn add(&mut self, loaded: Result<Option<Arc<Record>>>) {
        match loaded {
            Ok(Some(record)) => self.next.records.push(record),
            Ok(None) => {}
            Err(_) => self.next.damaged = self.next.damaged.saturating_add(1),
        }
        if self.next.records.len() >= SHOWN_AT_ONCE {
            self.show();
        }
    }

    fn show(&mut self) {
        let next = std::mem::take(&mut self.next);
        (self.see)(Visited { now: self.reader.clock.now(), ..next });
    }
}

/// Shows all records that count.
pub(crate) fn visit(reader: &Reader, see: impl Fn(Visited) + Sync) {
    let segments = reader.segments.all();
    // Up to where the frames of each segment were read one behind the other.
    let read_until: BTreeMap<u32, u32> = on_threads(THREADS, segments.len(), |at| {
        let segment = segments.get(at)?;
        Some((segment.number, visit_segment(reader, segment, &see)))
    })
    .into_iter()
    .flatten()
    .collect();
    on_threads(THREADS, SHARDS, |shard| {
        let is_left = |entry: &Entry| read_until.get(&entry.segment).is_none_or(|end| entry.offset >= *end);
        visit_entries(reader, u8::try_from(shard).unwrap_or(u8::MAX), is_left, &see);
    });
}

/// Shows the records in the frames of a segment up to the first place that is no whole frame, and says where that is.
fn visit_segment(reader: &Reader, segment: &Segment, see: &impl Fn(Visited)) -> u32 {
    let mut shown = VisitBuffer { reader, see, next: Visited::default() };
    let end = segment.file.bytes().map_or(0, |bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
    let mut walk = Walk::new(&*segment.file, segment.seed, end);
    while let Ok(Step::Frame(frame)) = walk.next() {
        let Some(found) = Entry::of_frame(segment.number, &frame) else { continue };
        let is_current = reader.index.get(&found.id).is_some_and(|known| known.is_at(&found));
        if is_current {
            let now = reader.clock.now();
            shown.add(reader.decode(&found, Asked::Any, &frame, now).map(|record| record.map(Arc::new)));
        }
    }
    shown.show();
    walk.at()
}

/// Shows the records of one shard that are left: those behind damage, one by one.
fn visit_entries(reader: &Reader, shard: u8, is_left: impl Fn(&Entry) -> bool, see: &impl Fn(Visited)) {
    let Some(left) =
        reader.index.shard(shard).map(|shard| shard.entries().filter(&is_left).collect::<Vec<_>>())
    else {
        return;
    };
    let mut shown = VisitBuffer { reader, see, next: Visited::default() };
    for entry in left {
        shown.add(reader.read(&entry, Asked::Any));
    }
    shown.show();
}
