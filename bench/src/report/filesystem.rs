//! On which disk a folder is.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Which filesystem a folder is on, and on which device: `ext4 on /dev/sda1`. One that keeps files in memory is
/// refused, with advice: a sync costs nothing there.
pub(crate) fn filesystem(path: &Path, advice: &str) -> Result<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("mounts are read on Linux only")?;
    let (kind, device) = mount_of(&mounts, path).context("the folder is on no filesystem")?;
    if ["tmpfs", "ramfs"].contains(&kind) {
        bail!("{} is on {kind}, in memory: {advice}", path.display());
    }
    Ok(format!("{kind} on {device}"))
}

/// Kind and device of the mount that is nearest above the path; of two on one place, the later hides the earlier.
fn mount_of<'a>(mounts: &'a str, path: &Path) -> Option<(&'a str, &'a str)> {
    let lines = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (device, place, kind) = (words.next()?, words.next()?, words.next()?);
        path.starts_with(place).then_some((place.len(), kind, device))
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
