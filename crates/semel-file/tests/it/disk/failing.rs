//! Any disk, with an error at the nth call, or with no room left.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use semel_file::disk::{Disk, DiskFile};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nothing was done.
    Refused,
    /// Nothing was done, because there is no room for it.
    NoRoom,
    /// Of a write, the first half was done; of anything else, nothing.
    Short,
    /// All of it was done, and nobody will believe it.
    Late,
    /// Nothing was done, and nobody is told: the negative control. A read finds nothing.
    Hidden,
}

/// Which calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Those that change something or make it last.
    Changes,
    /// Those that read bytes, lengths or names, or open a file.
    Reads,
}

/// The call that failed: what it was, and what the file was called then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) what: &'static str,
    pub(crate) name: String,
    /// Whether it said that there is no room.
    pub(crate) for_want_of_room: bool,
}

impl Failed {
    /// Whether it was to write or sync a part of the log itself, and not what is only prepared or tidied up.
    pub(crate) fn is_of_the_log(&self) -> bool {
        let is_segment = Path::new(&self.name).extension().is_some_and(|extension| extension == "log");
        is_segment && ["write", "sync"].contains(&self.what)
    }
}

/// Any disk, with errors. Clones are the same disk.
#[derive(Clone)]
pub(crate) struct FailingDisk {
    disk: Arc<dyn Disk>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    changes: u64,
    reads: u64,
    plan: Option<(Calls, u64, Failure)>,
    failed: Option<Failed>,
    room: Room,
    /// What the files with a handle are called by now.
    names: Vec<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Room {
    #[default]
    Enough,
    /// Nothing new is taken and nothing may grow; what is there may be written over.
    None,
}

impl FailingDisk {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the nth call from now on fail, that one only.
    pub(crate) fn fail_at(&self, calls: Calls, nth: u64, failure: Failure) {
        let mut state = self.state();
        let made = state.made(calls);
        state.plan = Some((calls, made + nth, failure));
    }

    /// Lets no more calls fail.
    pub(crate) fn heal(&self) {
        self.state().plan = None;
    }

    /// How many such calls there were.
    pub(crate) fn made(&self, calls: Calls) -> u64 {
        self.state().made(calls)
    }

    /// The call that was made to fail, if it came.
    pub(crate) fn failed(&self) -> Option<Failed> {
        self.state().failed.clone()
    }

    /// From now on there is no room.
    pub(crate) fn fill(&self) {
        self.state().room = Room::None;
    }

    /// From now on there is room again.
    pub(crate) fn make_room(&self) {
        self.state().room = Room::Enough;
    }

    /// Whether this call is to fail, and how.
    fn meets(&self, calls: Calls, what: &'static str, name: &str) -> Option<Failure> {
        let mut state = self.state();
        match calls {
            Calls::Changes => state.changes += 1,
            Calls::Reads => state.reads += 1,
        }
        let (_, _, failure) =
            state.plan.filter(|(planned, nth, _)| *planned == calls && *nth == state.made(calls))?;
        let for_want_of_room = match failure {
            Failure::NoRoom => true,
            Failure::Short => what == "write",
            Failure::Refused | Failure::Late | Failure::Hidden => false,
        };
        state.failed = Some(Failed { what, name: name.to_owned(), for_want_of_room });
        Some(failure)
    }

    fn change<T: Default>(
        &self,
        what: &'static str,
        name: &str,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match self.meets(Calls::Changes, what, name) {
            None => act(),
            Some(Failure::NoRoom) => Err(no_room()),
            Some(Failure::Refused | Failure::Short) => Err(bad_disk()),
            Some(Failure::Late) => act().and_then(|_| Err(bad_disk())),
            Some(Failure::Hidden) => Ok(T::default()),
        }
    }

    fn read<T: Default>(
        &self,
        what: &'static str,
        name: &str,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match self.meets(Calls::Reads, what, name) {
            None => act(),
            Some(Failure::Hidden) => Ok(T::default()),
            Some(_) => Err(bad_disk()),
        }
    }

    fn handle(&self, name: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let mut state = self.state();
        state.names.push(name.to_owned());
        Arc::new(Handle { disk: self.clone(), number: state.names.len() - 1, file })
    }

    fn is_full(&self) -> bool {
        self.state().room == Room::None
    }
}

impl State {
    fn made(&self, calls: Calls) -> u64 {
        match calls {
            Calls::Changes => self.changes,
            Calls::Reads => self.reads,
        }
    }
}

/// EIO and ENOSPC by number: that is how they come.
fn bad_disk() -> io::Error {
    io::Error::from_raw_os_error(5)
}

fn no_room() -> io::Error {
    io::Error::from_raw_os_error(28)
}

impl Disk for FailingDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        self.read("names", "", || self.disk.names())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        if self.is_full() {
            return Err(no_room());
        }
        let made = self.change("create", name, || self.disk.create(name).map(Some))?;
        // A file that is hidden from is made after all: there is no handle to nothing.
        let file = made.map_or_else(|| self.disk.create(name), Ok)?;
        Ok(self.handle(name, file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let found = self.read("open", name, || self.disk.open(name).map(Some))?;
        let file = found.ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(name, file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change("rename", from, || self.disk.rename(from, to))?;
        for name in self.state().names.iter_mut().filter(|name| *name == from) {
            to.clone_into(name);
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change("remove", name, || self.disk.remove(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.change("sync names", "", || self.disk.sync_names())
    }
}

struct Handle {
    disk: FailingDisk,
    number: usize,
    file: Arc<dyn DiskFile>,
}

impl Handle {
    fn name(&self) -> String {
        self.disk.state().names[self.number].clone()
    }

    fn refuses_to_grow(&self, until: u64) -> io::Result<bool> {
        Ok(self.disk.is_full() && self.file.bytes()? < until)
    }
}

impl DiskFile for Handle {
    fn bytes(&self) -> io::Result<u64> {
        self.disk.read("bytes", &self.name(), || self.file.bytes())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.read("read", &self.name(), || self.file.read_at(into, offset))
    }

    fn read_cached_at(&self, into: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.disk.read("read", &self.name(), || self.file.read_cached_at(into, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.refuses_to_grow(offset + bytes.len() as u64)? {
            return Err(no_room());
        }
        let name = self.name();
        match self.disk.meets(Calls::Changes, "write", &name) {
            None => self.file.write_at(bytes, offset),
            Some(Failure::Refused) => Err(bad_disk()),
            Some(Failure::NoRoom) => Err(no_room()),
            Some(Failure::Short) => {
                self.file.write_at(&bytes[..bytes.len() / 2], offset)?;
                Err(no_room())
            }
            Some(Failure::Late) => {
                self.file.write_at(bytes, offset)?;
                Err(bad_disk())
            }
            Some(Failure::Hidden) => Ok(()),
        }
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        if self.refuses_to_grow(bytes)? {
            return Err(no_room());
        }
        self.disk.change("set bytes", &self.name(), || self.file.set_bytes(bytes))
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.change("sync", &self.name(), || self.file.sync())
    }
}
