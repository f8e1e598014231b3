//! Any disk that refuses one step of making the second segment, with an error of the test's choice or with a panic.

use std::io;
use std::sync::{Arc, Condvar, Mutex};

use semel_file::disk::{Disk, DiskFile};

/// How the name of what is refused begins: the segment that a new store makes in advance.
const REFUSED: &str = "00000002";

/// The steps in which a segment is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Create,
    Write,
    Sync,
    Rename,
    SyncNames,
}

impl Step {
    pub(crate) const ALL: [Self; 5] = [Self::Create, Self::Write, Self::Sync, Self::Rename, Self::SyncNames];
}

/// How a step is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// With this error of the system, by number: that is how they come.
    Errno(i32),
    Panic,
}

/// A disk that refuses. Clones are the same disk.
#[derive(Clone)]
pub(crate) struct RefusingDisk {
    disk: Arc<dyn Disk>,
    shared: Arc<Shared>,
}

struct Shared {
    step: Step,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    refusal: Refusal,
    /// How many more times the step is refused.
    left: u64,
    refused: u64,
    /// The segment has its name, which may not last yet.
    is_renamed: bool,
    /// The segment is there.
    is_made: bool,
}

impl RefusingDisk {
    /// Refuses the step so many times.
    pub(crate) fn new(disk: Arc<dyn Disk>, step: Step, refusal: Refusal, times: u64) -> Self {
        let state = State { refusal, left: times, refused: 0, is_renamed: false, is_made: false };
        Self { disk, shared: Arc::new(Shared { step, state: Mutex::new(state), changed: Condvar::new() }) }
    }

    /// Refuses nothing from now on.
    pub(crate) fn heal(&self) {
        self.shared.state.lock().unwrap().left = 0;
    }

    /// How often it refused.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.state.lock().unwrap().refused
    }

    /// Waits until it refused so often.
    pub(crate) fn wait_until_refused(&self, times: u64) {
        let state = self.shared.state.lock().unwrap();
        drop(self.shared.changed.wait_while(state, |state| state.refused < times).unwrap());
    }

    /// Waits until the segment is made after all.
    pub(crate) fn wait_until_made(&self) {
        let state = self.shared.state.lock().unwrap();
        drop(self.shared.changed.wait_while(state, |state| !state.is_made).unwrap());
    }
}

impl Shared {
    fn meets(&self, step: Step, name: &str) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let is_of_segment =
            if step == Step::SyncNames { state.is_renamed } else { name.starts_with(REFUSED) };
        if is_of_segment && step == self.step && state.left > 0 {
            state.left -= 1;
            state.refused += 1;
            let refusal = state.refusal;
            drop(state);
            self.changed.notify_all();
            return match refusal {
                Refusal::Errno(number) => Err(io::Error::from_raw_os_error(number)),
                Refusal::Panic => panic!("the disk panics, as it was asked to"),
            };
        }
        if is_of_segment && step == Step::Rename {
            state.is_renamed = true;
        }
        if is_of_segment && step == Step::SyncNames {
            state.is_made = true;
            self.changed.notify_all();
        }
        Ok(())
    }
}

impl Disk for RefusingDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        self.disk.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.shared.meets(Step::Create, name)?;
        let file = self.disk.create(name)?;
        Ok(Arc::new(RefusingFile { name: name.to_owned(), file, shared: Arc::clone(&self.shared) }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.shared.meets(Step::Rename, from)?;
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.shared.meets(Step::SyncNames, "")?;
        self.disk.sync_names()
    }
}

struct RefusingFile {
    name: String,
    file: Arc<dyn DiskFile>,
    shared: Arc<Shared>,
}

impl DiskFile for RefusingFile {
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn read_cached_at(&self, into: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.file.read_cached_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.shared.meets(Step::Write, &self.name)?;
        self.file.write_at(bytes, offset)
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.file.set_bytes(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.shared.meets(Step::Sync, &self.name)?;
        self.file.sync()
    }
}
