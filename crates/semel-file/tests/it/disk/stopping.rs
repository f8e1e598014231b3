//! Any disk, on which named calls stop until the test lets them go on.

use std::io;
use std::sync::{Arc, Condvar, Mutex};

use semel_file::disk::{Disk, DiskFile};

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Write,
    Sync,
    Read,
    CachedRead,
    Remove,
}

/// A disk whose calls can be stopped. Clones are the same disk.
#[derive(Clone)]
pub(crate) struct StoppingDisk {
    disk: Arc<dyn Disk>,
    stops: Arc<Mutex<Vec<Stop>>>,
}

/// A point at which calls stop: a kind of call of one file. Clones are the same point.
#[derive(Clone)]
pub(crate) struct Stop {
    call: Call,
    file: &'static str,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    counts: Mutex<Counts>,
    changed: Condvar,
}

/// How many calls may still go on, and how many have reached the point.
#[derive(Default)]
struct Counts {
    may_go: u64,
    reached: u64,
}

impl StoppingDisk {
    pub(crate) fn new(disk: impl Disk) -> Self {
        Self { disk: Arc::new(disk), stops: Arc::default() }
    }

    /// From now on every such call of files whose name begins like this stops.
    pub(crate) fn stop_at(&self, call: Call, file: &'static str) -> Stop {
        let stop = Stop { call, file, gate: Arc::default() };
        self.stops.lock().unwrap().push(stop.clone());
        stop
    }

    fn pass(&self, call: Call, file: &str) {
        let stops = self.stops.lock().unwrap();
        let found = stops.iter().find(|stop| stop.call == call && file.starts_with(stop.file)).cloned();
        drop(stops);
        if let Some(stop) = found {
            stop.gate.pass();
        }
    }

    fn file(&self, name: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(StoppingFile { disk: self.clone(), name: name.to_owned(), file })
    }
}

impl Stop {
    /// Waits until so many calls have reached the point.
    pub(crate) fn wait_for(&self, reached: u64) {
        let counts = self.gate.counts.lock().unwrap();
        drop(self.gate.changed.wait_while(counts, |counts| counts.reached < reached).unwrap());
    }

    /// Lets one more call go on.
    pub(crate) fn let_one_go(&self) {
        self.gate.counts.lock().unwrap().may_go += 1;
        self.gate.changed.notify_all();
    }

    /// Lets every call go on.
    pub(crate) fn let_all_go(&self) {
        self.gate.counts.lock().unwrap().may_go = u64::MAX / 2;
        self.gate.changed.notify_all();
    }
}

impl Gate {
    fn pass(&self) {
        let mut counts = self.counts.lock().unwrap();
        counts.reached += 1;
        self.changed.notify_all();
        let mut counts = self.changed.wait_while(counts, |counts| counts.may_go == 0).unwrap();
        counts.may_go -= 1;
    }
}

struct StoppingFile {
    disk: StoppingDisk,
    name: String,
    file: Arc<dyn DiskFile>,
}

impl Disk for StoppingDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        self.disk.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(name, self.disk.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(name, self.disk.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.pass(Call::Remove, name);
        self.disk.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_names()
    }
}

impl DiskFile for StoppingFile {
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.pass(Call::Read, &self.name);
        self.file.read_at(into, offset)
    }

    fn read_cached_at(&self, into: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.disk.pass(Call::CachedRead, &self.name);
        self.file.read_cached_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.pass(Call::Write, &self.name);
        self.file.write_at(bytes, offset)
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.file.set_bytes(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.pass(Call::Sync, &self.name);
        self.file.sync()
    }
}
