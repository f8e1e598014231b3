//! A folder of the machine's file system, held by one process at a time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::{Errno, ReadWriteFlags};
use semel::{Error, ErrorKind, Result};

use super::lock::{self, LOCK};
use super::{Disk, DiskFile};
use crate::format::name;

/// Outcomes are the business of the process alone.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A folder that this process holds until it is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    names: File,
    _lock: File,
    /// A data file is locked as well: the file that is only there for its lock may be moved away.
    identity: Mutex<Option<File>>,
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
        make(&path, &mut sync_folder).map_err(|error| cannot("make the folder", error))?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true).mode(FILE_MODE);
        let lock = options.open(path.join(LOCK)).map_err(|error| cannot("open its file lock", error))?;
        if let Some(by) = lock::take(&lock).map_err(|error| cannot("lock its file lock", error))? {
            return Err(in_use(&path, &by));
        }
        // A new store has none yet; what else may be wrong with it is for those to say who read it.
        let identity = open(&path.join(name::IDENTITY)).ok();
        if let Some(identity) = &identity
            && lock::take_second(identity).map_err(|error| cannot("lock semel.store", error))?
        {
            return Err(in_use(&path, LOCK_GONE));
        }
        // Only for the message to another process: whether it could be written changes nothing.
        drop(lock::sign(&lock));
        let names = File::open(&path).map_err(|error| cannot("open the folder", error))?;
        Ok(Self { path, names, _lock: lock, identity: Mutex::new(identity) })
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

/// Who uses a folder whose lock is free, while its data are locked.
const LOCK_GONE: &str = "another process, whose file lock was moved or removed";

/// Makes the folder and those above it that are missing, and their names as lasting as what will be in it: each is
/// known only to the folder above it.
fn make(path: &Path, sync: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let missing: Vec<&Path> =
        path.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.is_dir()).collect();
    for folder in missing.into_iter().rev() {
        match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
            Ok(()) => {}
            // Another process may have made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(error),
        }
        sync(folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

#[cold]
fn in_use(path: &Path, by: &str) -> Error {
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
        options.create(true).truncate(true).read(true).write(true).mode(FILE_MODE);
        Ok(Arc::new(options.open(self.path.join(name))?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(open(&self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))?;
        if to == name::IDENTITY {
            // A new store is locked from the moment on at which it is one.
            let identity = open(&self.path.join(to))?;
            identity.try_lock()?;
            *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = Some(identity);
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_that_is_made_is_synced_by_the_one_above_it() {
        let root = tempfile::tempdir().unwrap();
        let mut synced = Vec::new();
        let mut sync = |folder: &Path| {
            synced.push(folder.to_path_buf());
            Ok(())
        };
        make(&root.path().join("a/b/c"), &mut sync).unwrap();
        make(&root.path().join("a/b/d"), &mut sync).unwrap();
        make(&root.path().join("a/b/d"), &mut sync).unwrap();
        assert_eq!(synced, ["", "a", "a/b", "a/b"].map(|folder| root.path().join(folder)));
    }
}
