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
    points: Arc<Mutex<Vec<Point>>>,
}

/// Where calls stop: a kind of call of files whose name begins like this.
#[derive(Clone)]
struct Point {
    call: Call,
    file: &'static str,
    gate: Arc<Gate>,
}

/// Holds calls at a point until it is dropped.
pub(crate) struct Stop(Arc<Gate>);

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
        Self { disk: Arc::new(disk), points: Arc::default() }
    }

    /// From now on every such call of files whose name begins like this stops.
    pub(crate) fn stop_at(&self, call: Call, file: &'static str) -> Stop {
        let gate = Arc::<Gate>::default();
        self.points.lock().unwrap().push(Point { call, file, gate: Arc::clone(&gate) });
        Stop(gate)
    }

    /// Waits if such calls are stopped; whether they are.
    fn pass(&self, call: Call, file: &str) -> bool {
        let points = self.points.lock().unwrap();
        let found = points.iter().rfind(|point| point.call == call && file.starts_with(point.file)).cloned();
        drop(points);
        found.is_some_and(|point| {
            point.gate.pass();
            true
        })
    }

    fn file(&self, name: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(StoppingFile { disk: self.clone(), name: name.to_owned(), file })
    }
}

impl Stop {
    /// Waits until so many calls have reached the point.
    pub(crate) fn wait_for(&self, reached: u64) {
        let counts = self.0.counts.lock().unwrap();
        drop(self.0.changed.wait_while(counts, |counts| counts.reached < reached).unwrap());
    }

    /// Lets one more call go on.
    pub(crate) fn let_one_go(&self) {
        self.0.counts.lock().unwrap().may_go += 1;
        self.0.changed.notify_all();
    }

    /// Lets every call go on.
    pub(crate) fn let_all_go(&self) {
        self.0.counts.lock().unwrap().may_go = u64::MAX / 2;
        self.0.changed.notify_all();
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.let_all_go();
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
        // Whatever was in memory when the call began is not any more.
        if self.disk.pass(Call::CachedRead, &self.name) {
            return Ok(None);
        }
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
