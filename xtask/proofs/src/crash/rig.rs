//! File systems whose power can be cut: ext4 in a file on XFS, which clones that file in one step while it is written.
//!
//! A clone holds what had reached the disk at one instant, and nothing that a file system or a program still had in memory. That
//! is what a power cut leaves of a disk without a volatile cache of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use xtask::run::program;

/// Sparse: only what is written takes room.
const OUTER_BYTES: u64 = 2 << 30;
const INNER_BYTES: u64 = 512 << 20;

/// XFS, which clones files. It must be mounted in a mount namespace of its own, with which it goes away.
pub(super) struct Outer(PathBuf);

/// One ext4 in it, whose power can be cut.
pub(super) struct Rig {
    /// A folder of the outer one.
    home: PathBuf,
    /// Where victims live.
    pub(super) live: PathBuf,
}

/// What a power cut left, mounted again.
pub(super) struct Image {
    file: PathBuf,
    pub(super) folder: PathBuf,
}

impl Outer {
    pub(super) fn build(place: &Path) -> Result<Self> {
        let outer = place.join("outer");
        let outer_file = place.join("outer.img");
        sparse(&outer_file, OUTER_BYTES)?;
        tool("mkfs.xfs", &["-q", "-m", "reflink=1"], &[&outer_file])?;
        mount(&outer_file, &outer)?;
        // The mount holds it; without a name it cannot be left behind.
        fs::remove_file(&outer_file)?;
        Ok(Self(outer))
    }
}

impl Rig {
    /// The rig with this number.
    pub(super) fn build(outer: &Outer, number: u64) -> Result<Self> {
        let home = outer.0.join(number.to_string());
        fs::create_dir(&home)?;
        let (live, file) = (home.join("live"), home.join("live.img"));
        sparse(&file, INNER_BYTES)?;
        tool("mkfs.ext4", &["-q", "-F"], &[&file])?;
        mount(&file, &live)?;
        Ok(Self { home, live })
    }

    /// Cuts the power: clones the disk under the victims as it is at this instant.
    pub(super) fn cut(&self) -> Result<Cut> {
        let file = self.home.join("cut.img");
        tool("cp", &["--reflink=always"], &[&self.home.join("live.img"), &file])?;
        Ok(Cut { file, folder: self.home.join("cut") })
    }
}

/// What a power cut left.
pub(super) struct Cut {
    file: PathBuf,
    folder: PathBuf,
}

impl Cut {
    /// Mounts it, which recovers the file system's own journal.
    pub(super) fn mount(self) -> Result<Image> {
        mount(&self.file, &self.folder)?;
        Ok(Image { file: self.file, folder: self.folder })
    }
}

impl Image {
    /// Unmounts and removes it.
    pub(super) fn remove(self) -> Result<()> {
        tool("umount", &[], &[&self.folder])?;
        Ok(fs::remove_file(&self.file)?)
    }
}

// The end of the mount namespace does the same; this way the place is empty before it is removed.
impl Drop for Rig {
    fn drop(&mut self) {
        unmount(&self.home.join("cut"));
        unmount(&self.live);
    }
}

impl Drop for Outer {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

fn unmount(folder: &Path) {
    let words = ["--quiet", "--lazy"].map(Path::new).into_iter().chain([folder]);
    program("umount", words).succeeds();
}

fn sparse(file: &Path, bytes: u64) -> Result<()> {
    let made = File::create(file).and_then(|made| made.set_len(bytes));
    made.with_context(|| format!("cannot make {}", file.display()))
}

fn mount(file: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    tool("mount", &["-o", "loop"], &[file, folder])
}

/// Runs a program that must end soon: a file system that hangs must not take us along.
fn tool(name: &str, options: &[&str], files: &[&Path]) -> Result<()> {
    let words = ["--signal=KILL", "60", name].into_iter().chain(options.iter().copied()).map(Path::new);
    program("timeout", words.chain(files.iter().copied())).quietly()
}
