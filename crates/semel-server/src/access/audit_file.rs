//! The file that actions are written down in.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use semel::{Error, ErrorKind, Result};

/// Only whoever runs the server reads and writes it: it holds keys and reasons.
const MODE: u32 = 0o600;

/// A file of lines that survive what the disk survives. It is opened for each line, which is rare: so it may be moved
/// away, and a new one begun, without anybody being told.
#[derive(Debug)]
pub(super) struct AuditFile {
    path: PathBuf,
    one_at_a_time: Mutex<()>,
}

impl AuditFile {
    /// The file, which is tried at once: whoever cannot write it learns so before anybody acts.
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let file = Self { path, one_at_a_time: Mutex::default() };
        file.append("").map_err(|error| {
            let message = format!("the audit log {} cannot be written: {error}", file.path.display());
            Error::new(ErrorKind::Invalid, message).caused_by(error)
        })?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line, and waits until it is on the disk.
    pub(super) fn append(&self, line: &str) -> io::Result<()> {
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !self.path.exists();
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(MODE).open(&self.path)?;
        if is_new {
            self.sync_folder()?;
        }
        let mut text = String::with_capacity(line.len().saturating_add(2));
        if is_torn(&mut file)? {
            text.push('\n');
        }
        if !line.is_empty() {
            text.push_str(line);
            text.push('\n');
        }
        // One write: another process that appends does not come in between.
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }

    /// A new file is there after a crash only if its folder says so.
    fn sync_folder(&self) -> io::Result<()> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
    }
}

/// Whether the last line was cut off: by a crash, or a disk that was full.
fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
