//! A disk that says it has synced and has not: what the power cuts must catch.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use semel_file::disk::{Disk, DiskFile, Folder};

/// How late the late one syncs: about as long as a disk takes that is busy elsewhere.
const LATE_BY: Duration = Duration::from_millis(20);

/// What the disk does instead of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Lie {
    /// Nothing at all.
    Never,
    /// It says so at once, and syncs a little later.
    Late,
}

/// A folder whose syncs are lies.
pub(super) struct Liar {
    folder: Folder,
    later: Later,
}

/// Where syncs go to be done later; `None`: never.
type Later = Option<mpsc::Sender<Arc<dyn DiskFile>>>;

impl Liar {
    pub(super) fn new(folder: Folder, lie: Lie) -> Self {
        Self { folder, later: (lie == Lie::Late).then(sync_late) }
    }

    fn lying(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(LyingFile { file, later: self.later.clone() })
    }
}

fn sync_late() -> mpsc::Sender<Arc<dyn DiskFile>> {
    let (send, wanted) = mpsc::channel::<Arc<dyn DiskFile>>();
    thread::spawn(move || {
        while let Ok(first) = wanted.recv() {
            thread::sleep(LATE_BY);
            // Nobody waits for these, so nobody could be told of an error either.
            for file in std::iter::once(first).chain(wanted.try_iter()) {
                drop(file.sync());
            }
        }
    });
    send
}

impl Disk for Liar {
    fn names(&self) -> io::Result<Vec<String>> {
        self.folder.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.folder.create(name).map(|file| self.lying(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.folder.open(name).map(|file| self.lying(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    /// Names are no more certain than what they name: one that lasts while its file is still empty would be refused as
    /// damage, and what is to be shown is that records are lost.
    fn sync_names(&self) -> io::Result<()> {
        if self.later.is_some() { self.folder.sync_names() } else { Ok(()) }
    }
}

struct LyingFile {
    file: Arc<dyn DiskFile>,
    later: Later,
}

impl DiskFile for LyingFile {
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
        if let Some(later) = &self.later {
            drop(later.send(Arc::clone(&self.file)));
        }
        Ok(())
    }
}
