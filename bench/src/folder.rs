//! The folder in which a run makes its stores, and how much of the disk they take.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::report::workspace;

/// A folder that is removed with everything in it when the run ends.
pub(crate) struct TempFolder(PathBuf);

impl TempFolder {
    /// A new one under `parent`, by default under `target` of this workspace.
    pub(crate) fn under(parent: Option<&Path>) -> Result<Self> {
        let parent = parent.map_or_else(|| workspace().join("target"), Path::to_path_buf);
        let path = parent.join(format!("semel-bench-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("{} cannot be created", path.display()))?;
        Ok(Self(path.canonicalize()?))
    }

    /// One for a test: the process has one folder, and tests run beside each other.
    #[cfg(test)]
    pub(crate) fn for_test(name: &str) -> Self {
        Self::under(Some(&std::env::temp_dir().join(format!("semel-bench-test-{name}")))).unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes everything in it: the next part needs the room, on the disk and in the page cache.
    pub(crate) fn clear(&self) -> Result<()> {
        fs::remove_dir_all(&self.0).with_context(|| format!("{} cannot be removed", self.0.display()))?;
        fs::create_dir(&self.0).with_context(|| format!("{} cannot be created", self.0.display()))
    }

    /// A folder in it that does not exist yet, or no longer.
    pub(crate) fn fresh(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
        }
        fs::create_dir(&path).with_context(|| format!("{} cannot be created", path.display()))?;
        Ok(path)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} is left over: {error}", self.0.display());
        }
    }
}

/// How many bytes of the disk a folder takes: blocks, not lengths, so that holes do not count and what is kept in
/// reserve does.
pub(crate) fn disk_bytes(folder: &Path) -> Result<u64> {
    const BLOCK_BYTES: u64 = 512;
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A file that was removed meanwhile takes no space.
        let Ok(metadata) = entry.metadata() else { continue };
        bytes += if metadata.is_dir() { disk_bytes(&entry.path())? } else { metadata.blocks() * BLOCK_BYTES };
    }
    Ok(bytes)
}
