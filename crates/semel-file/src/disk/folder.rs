//! A folder of the machine's file system, held by one process at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IoSliceMut, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::{Errno, ReadWriteFlags};
use semel::{Error, ErrorKind, Result};

use super::contract::{Disk, DiskFile};

/// The file whose lock says that somebody uses the folder. Its content, the process, is for people.
const LOCK: &str = "lock";

/// A folder that this process holds until it is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    names: File,
    _lock: File,
}

impl Folder {
    /// Takes the folder, which is made if it is missing. Refused while another process, or another store of this one,
    /// holds it.
    pub fn hold(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let cannot = |what: &str, error: io::Error| {
            let message =
                format!("{}: cannot {what}: {error}; check the path and its rights", path.display());
            Error::new(ErrorKind::Unavailable, message).caused_by(error)
        };
        make(&path).map_err(|error| cannot("make the folder", error))?;
        let mut lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path.join(LOCK))
            .map_err(|error| cannot("open its lock", error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(&path, &mut lock)),
            Err(TryLockError::Error(error)) => return Err(cannot("lock it", error)),
        }
        // Only for the message of whoever comes second: whether it could be written changes nothing.
        drop(lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id())));
        let names = File::open(&path).map_err(|error| cannot("open the folder", error))?;
        Ok(Self { path, names, _lock: lock })
    }

    /// The same for a folder that must be there.
    pub fn hold_existing(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            return Self::hold(path);
        }
        let message = format!("{}: is no folder; give the folder of a store", path.display());
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

/// Makes the folder, and its name as lasting as what will be in it.
fn make(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path)?;
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

#[cold]
fn in_use(path: &Path, lock: &mut File) -> Error {
    let mut process = String::new();
    let by = match lock.read_to_string(&mut process) {
        Ok(1..) => format!("process {}", process.trim()),
        Ok(_) | Err(_) => "another process".to_owned(),
    };
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "{}: in use by {by}; a folder serves one process at a time: stop that one, or give this one a folder \
             of its own",
            path.display()
        ),
    )
}

impl Disk for Folder {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != LOCK {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).read(true).write(true);
        Ok(Arc::new(options.open(self.path.join(name))?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.names.sync_all()
    }
}

impl DiskFile for File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(filled as u64);
            match FileExt::read_at(self, rest, at) {
                Ok(0) => break,
                Ok(read) => filled = filled.saturating_add(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn read_cached_at(&self, into: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let wanted = into.len();
        match rustix::io::preadv2(self, &mut [IoSliceMut::new(into)], offset, ReadWriteFlags::NOWAIT) {
            Ok(read) if read == wanted => Ok(Some(read)),
            // Part of it is not in memory, or the file ends here: the blocking read tells which.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
