//! What a reader must know to compare numbers: the machine, the build, the disk.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

pub(crate) fn workspace() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("bench"), PathBuf::from)
}

/// Facts that every report starts with.
pub(super) fn machine_and_build() -> Vec<(&'static str, String)> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    vec![
        ("cores", std::thread::available_parallelism().map_or(0, usize::from).to_string()),
        ("CPU", model.map_or("unknown", |(_, model)| model.trim()).to_owned()),
        ("system", format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned()),
        ("profile", env!("CARGO_PROFILE_NAME").to_owned()),
    ]
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

    #[test]
    fn every_report_names_the_profile_it_was_built_with() {
        let facts = machine_and_build();
        let (_, profile) = facts.iter().find(|(name, _)| *name == "profile").unwrap();
        let program = std::env::current_exe().unwrap();
        assert!(program.iter().any(|folder| folder == profile.as_str()), "{profile}: {}", program.display());
    }
}
