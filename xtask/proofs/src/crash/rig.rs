//! File systems whose power can be cut: ext4 in a file on XFS, which clones that file in one step while it is written.
//!
//! A clone holds what had reached the disk at one instant, and nothing that a file system or a program still had in memory. That
//! is what a power cut leaves of a disk without a volatile cache of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use xtask::run::program;

use super::fault::{Kind, Tally};
use super::ledger::Ledger;
use super::victim::{SharedLedger, Victim};
use crate::dice::Dice;

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

/// How long a victim goes on between two cuts, at most.
const BETWEEN_MOST: Duration = Duration::from_millis(40);
/// How long after its start a victim is cut off that is to be opening its folder, at most.
const OPENING_MOST: Duration = Duration::from_millis(12);
/// So many victims in a hundred have their power cut while they open.
const CUT_OPENING_PERCENT: usize = 30;
/// How many cuts a victim lives through, at most.
const CUTS_A_LIFE_MOST: u64 = 8;
/// After so many faults it is clear that something is broken.
const FAULTS_MOST: usize = 20;

/// Where power is cut, and by what choices.
pub(super) struct Cuts {
    rig: Rig,
    program: PathBuf,
    dice: Dice,
}

/// A victim's folder, and what it may be held to.
struct Scene {
    folder: &'static str,
    lie: Option<String>,
    ledger: SharedLedger,
    /// What the images showed.
    tally: Tally,
    left: u64,
}

impl Scene {
    /// Whether there is nothing more to be learned.
    fn is_over(&self) -> bool {
        let is_clear = match self.lie {
            // A lie may show in other ways first; a loss is the plainest.
            Some(_) => self.tally.count(Kind::Lost) > 0,
            None => self.tally.faults.len() + self.ledger.lock().tally.faults.len() > FAULTS_MOST,
        };
        self.left == 0 || is_clear
    }
}

impl Cuts {
    pub(super) fn new(rig: Rig, program: PathBuf, seed: u64) -> Self {
        Self { rig, program, dice: Dice::new(seed) }
    }

    /// Takes so many images; fewer if the store is clearly broken, or the lie has shown.
    pub(super) fn take(&mut self, lie: Option<&str>, images: u64, step: impl Fn()) -> Result<(u64, Tally)> {
        let (ledger, folder) = (SharedLedger::default(), if lie.is_some() { "lie" } else { "store" });
        let lie = lie.map(str::to_owned);
        let mut scene = Scene { folder, lie, ledger, tally: Tally::default(), left: images };
        while !scene.is_over() {
            self.life(&mut scene, &step)?;
        }
        let folder = self.rig.live.join(scene.folder);
        Victim::start(&self.program, &["check"], &folder, &scene.ledger)?.finish()?;
        std::fs::remove_dir_all(folder)?;
        scene.tally.add(std::mem::take(&mut scene.ledger.lock().tally));
        Ok((images - scene.left, scene.tally))
    }

    /// One victim from its start until it is killed, with some power cuts in between.
    fn life(&mut self, scene: &mut Scene, step: &impl Fn()) -> Result<()> {
        let (is_early, seed) = (self.dice.happens(CUT_OPENING_PERCENT), self.dice.seed().to_string());
        let mut args = vec!["run", "--seed", &seed];
        if let Some(lie) = &scene.lie {
            args.extend(["--lie", lie]);
        }
        let live = self.rig.live.join(scene.folder);
        let mut victim = Victim::start(&self.program, &args, &live, &scene.ledger)?;
        if is_early && live.exists() {
            std::thread::sleep(self.dice.instant(OPENING_MOST));
            self.cut(scene)?;
            step();
        }
        if !victim.wait_until_looked()? {
            bail!("a victim could not open its own folder: {:?}", scene.ledger.lock().tally.faults);
        }
        for _ in 0..=self.dice.number(CUTS_A_LIFE_MOST) {
            if scene.is_over() {
                break;
            }
            std::thread::sleep(self.dice.instant(BETWEEN_MOST));
            self.cut(scene)?;
            step();
        }
        victim.kill()
    }

    /// Cuts the power, and looks what is left. What was heard before the cut must be there; what was heard
    /// after it explains what else is.
    fn cut(&mut self, scene: &mut Scene) -> Result<()> {
        let noted = scene.ledger.lock().note();
        let image = self.rig.cut()?.mount()?;
        let seen = SharedLedger::collecting();
        Victim::start(&self.program, &["check"], image.folder.join(scene.folder), &seen)?.finish()?;
        image.remove()?;
        // Only now: lines that were written before the cut may have been read after it.
        let noted = scene.ledger.lock().noted(noted);
        let Ledger { tally, told, .. } = std::mem::take(&mut *seen.lock());
        let is_open = tally.count(Kind::Refused) == 0;
        scene.tally.add(tally);
        scene.left = scene.left.saturating_sub(1);
        if let Some((found, now)) = told {
            scene.tally.faults.extend(noted.judge(&found, now));
        } else if is_open {
            bail!("an image was opened, and nobody told what is in it");
        }
        Ok(())
    }
}
