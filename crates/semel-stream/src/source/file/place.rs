//! A file that is opened behind a line, and noticed when it is another one.

use std::fs::Metadata;
use std::io::{self, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use semel::{Error, ErrorKind, Result};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// A file, and which one it was when it was opened.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    opened: Option<Identity>,
}

/// What stays the same while a file only grows: its device and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity(u64, u64);

impl Place {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), opened: None }
    }

    /// Opens the file at this byte, which must be the end of a line.
    pub(super) async fn open_at(&mut self, at: u64) -> Result<File> {
        match self.opened_at(at).await.map_err(|error| self.unread(error))? {
            Some((file, opened)) => {
                self.opened = Some(opened);
                Ok(file)
            }
            None => Err(self.other(&format!("no line ends at byte {at}, up to where it was read"))),
        }
    }

    /// Notices that the file was cut off, or that another one has its name now. `end` is how far it was read.
    pub(super) async fn check(&self, end: u64) -> Result<()> {
        match tokio::fs::metadata(&self.path).await {
            Ok(now) if Some(identity(&now)) != self.opened => {
                Err(self.other("another file has its name now"))
            }
            Ok(now) if now.len() < end => Err(self.other("it is shorter than what was read of it")),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.other("it is gone")),
            Err(error) => Err(self.unread(error)),
        }
    }

    /// The file at this byte; `None` if no line ends there.
    async fn opened_at(&self, at: u64) -> io::Result<Option<(File, Identity)>> {
        let mut file = File::open(&self.path).await?;
        let metadata = file.metadata().await?;
        if metadata.len() < at {
            return Ok(None);
        }
        let mut around = Vec::new();
        file.seek(SeekFrom::Start(at.saturating_sub(1))).await?;
        (&mut file).take(2).read_to_end(&mut around).await?;
        file.seek(SeekFrom::Start(at)).await?;
        // The last line may have had no end when it was read.
        let ends_line = at == 0 || matches!(around[..], [b'\n', ..] | [_] | [_, b'\n' | b'\r']);
        Ok(ends_line.then_some((file, identity(&metadata))))
    }

    fn unread(&self, error: io::Error) -> Error {
        let message = format!("cannot read `{}`: see that it is there and can be read", self.path.display());
        Error::new(ErrorKind::Unavailable, message).caused_by(error)
    }

    fn other(&self, why: &str) -> Error {
        let message = format!(
            "`{}` is not the file that it was: {why}. Read a new file under a name of its own, or rewind the offset",
            self.path.display()
        );
        Error::new(ErrorKind::Invalid, message)
    }
}

fn identity(metadata: &Metadata) -> Identity {
    Identity(metadata.dev(), metadata.ino())
}
