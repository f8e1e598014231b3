//! Any disk, whose first segment is synced only when the test lets it.

use std::io;
use std::sync::{Arc, Condvar, Mutex};

use semel_file::disk::{Disk, DiskFile};

/// How the name of what is gated begins: the segment that a new store writes to.
const GATED: &str = "00000001";

/// A disk with a gate before the syncs of its first segment. Clones have the same gate.
#[derive(Clone)]
pub(crate) struct GatedDisk {
    disk: Arc<dyn Disk>,
    gate: Arc<Gate>,
}

/// How many syncs may still pass, and how many wait or have passed.
#[derive(Default)]
struct Gate {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Default)]
struct Counts {
    may_pass: u64,
    came: u64,
}

impl GatedDisk {
    /// The gate is open until it is [closed](Self::close).
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        let gate = Gate { counts: Mutex::new(Counts { may_pass: u64::MAX, came: 0 }), ..Gate::default() };
        Self { disk, gate: Arc::new(gate) }
    }

    /// Lets no sync pass from now on.
    pub(crate) fn close(&self) {
        *self.gate.counts.lock().unwrap() = Counts::default();
    }

    /// Lets one more sync pass.
    pub(crate) fn let_one_pass(&self) {
        self.gate.counts.lock().unwrap().may_pass += 1;
        self.gate.changed.notify_all();
    }

    /// Opens the gate for good.
    pub(crate) fn open_for_good(&self) {
        self.gate.counts.lock().unwrap().may_pass = u64::MAX / 2;
        self.gate.changed.notify_all();
    }

    /// Waits until so many syncs came to the closed gate.
    pub(crate) fn wait_for(&self, came: u64) {
        let counts = self.gate.counts.lock().unwrap();
        drop(self.gate.changed.wait_while(counts, |counts| counts.came < came).unwrap());
    }

    fn gated(&self, name: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        if name.starts_with(GATED) {
            Arc::new(GatedFile { file, gate: Arc::clone(&self.gate) })
        } else {
            file
        }
    }
}

struct GatedFile {
    file: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl Disk for GatedDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        self.disk.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.gated(name, self.disk.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.gated(name, self.disk.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_names()
    }
}

impl DiskFile for GatedFile {
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
        self.file.write_at(bytes, offset)
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.file.set_bytes(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        let mut counts = self.gate.counts.lock().unwrap();
        counts.came += 1;
        self.gate.changed.notify_all();
        let mut counts = self.gate.changed.wait_while(counts, |counts| counts.may_pass == 0).unwrap();
        counts.may_pass -= 1;
        drop(counts);
        self.file.sync()
    }
}
