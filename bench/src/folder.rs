//! Folders: that of this workspace, that in which a run makes its stores, its filesystem, and the disk that it takes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

pub(crate) fn workspace() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("bench"), PathBuf::from)
}

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

/// How many bytes of the disk a folder takes: blocks, not lengths, so that holes do not count and reserves do.
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

/// The filesystem of a folder and its device, such as `ext4 on /dev/sda1`. A filesystem in memory is refused, with the
/// advice: a sync costs nothing there.
pub(crate) fn filesystem(path: &Path, advice: &str) -> Result<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("mounts are read on Linux only")?;
    let (kind, device) = mount_of(&mounts, path).context("the folder is on no filesystem")?;
    if ["tmpfs", "ramfs"].contains(&kind) {
        bail!("{} is on {kind}, in memory: {advice}", path.display());
    }
    Ok(format!("{kind} on {device}"))
}

/// Kind and device of the mount nearest above the path; of two mounts on one path, the later hides the earlier.
fn mount_of<'a>(mounts: &'a str, path: &Path) -> Option<(&'a str, &'a str)> {
    let lines = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (device, mounted_at, kind) = (words.next()?, words.next()?, words.next()?);
        path.starts_with(mounted_at).then_some((mounted_at.len(), kind, device))
    });
    lines.max_by_key(|(length, ..)| *length).map(|(_, kind, device)| (kind, device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_above_a_path_is_found() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/data xfs rw 0 0\n";
        assert_eq!(mount_of(mounts, Path::new("/tmp/data/x")), Some(("xfs", "/dev/b")));
        assert_eq!(mount_of(mounts, Path::new("/tmp/database")), Some(("tmpfs", "tmpfs")));
        assert_eq!(mount_of(mounts, Path::new("/var")), Some(("ext4", "/dev/a")));
    }
}
