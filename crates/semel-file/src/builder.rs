//! How a file store is to be.

use std::path::PathBuf;
use std::sync::Arc;

use semel::Result;
use semel::clock::{Clock, SystemClock};
use semel::store::Caching;

use crate::disk::{Disk, Folder};
use crate::recovery::Recovery;
use crate::store::FileStore;

/// Default size of a segment.
const SEGMENT_BYTES_DEFAULT: u32 = 64 << 20;
/// Fewer bytes hold hardly a record; more would not fit the offsets.
const SEGMENT_BYTES_RANGE: std::ops::RangeInclusive<u32> = 4_096..=(1 << 30);

/// On how many threads the index is loaded at opening.
const LOAD_THREADS: usize = 2;

/// How a file store is to be.
#[must_use = "nothing is opened until `open`"]
pub struct FileStoreBuilder {
    at: At,
    clock: Option<Arc<dyn Clock>>,
    segment_bytes: u32,
    threads: Threads,
}

enum At {
    Folder(PathBuf),
    Disk(Arc<dyn Disk>),
}

enum Threads {
    Own,
    Callers,
}

impl FileStoreBuilder {
    pub(crate) fn in_folder(path: PathBuf) -> Self {
        Self::new(At::Folder(path))
    }

    pub(crate) fn on_disk(disk: Arc<dyn Disk>) -> Self {
        Self::new(At::Disk(disk))
    }

    fn new(at: At) -> Self {
        Self { at, clock: None, segment_bytes: SEGMENT_BYTES_DEFAULT, threads: Threads::Own }
    }

    /// Where the store's time comes from; default: the machine's clock as it is when the store is opened, and its running
    /// time from there on. If the clock is behind the last moment in the log, time goes on from that moment. With a clock of your own, engines ask the store for every replay: the time that
    /// their replay cache counts is this machine's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// How large a segment of the log becomes at most; default: 64 MiB. The log is reclaimed in segments, and the room of
    /// two is held in reserve.
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.segment_bytes = bytes.clamp(*SEGMENT_BYTES_RANGE.start(), *SEGMENT_BYTES_RANGE.end());
        self
    }

    /// Does all work on the threads of the callers, one at a time: every reply is there at once. For tests and small tools;
    /// callers do not share syncs, and wait for the disk where they stand.
    pub fn inline(mut self) -> Self {
        self.threads = Threads::Callers;
        self
    }

    /// Opens the store: takes the folder, and finds everything that was acknowledged.
    pub fn open(self) -> Result<FileStore> {
        let (disk, place): (Arc<dyn Disk>, Box<str>) = match self.at {
            At::Folder(path) => {
                let place = path.display().to_string().into();
                (Arc::new(Folder::hold(path)?), place)
            }
            At::Disk(disk) => (disk, "this disk".into()),
        };
        let (clock, caching) = match self.clock {
            Some(clock) => (clock, Caching::Refused),
            None => (Arc::new(SystemClock::new()) as Arc<dyn Clock>, Caching::Allowed),
        };
        let load_threads = match self.threads {
            Threads::Own => LOAD_THREADS,
            Threads::Callers => 1,
        };
        let segment_bytes_max = self.segment_bytes;
        let opened = Recovery { disk, place, clock, caching, segment_bytes_max, load_threads }.open()?;
        match self.threads {
            Threads::Own => FileStore::threaded(opened),
            Threads::Callers => Ok(FileStore::inline(opened)),
        }
    }
}
