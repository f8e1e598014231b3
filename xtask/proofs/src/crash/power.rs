//! `cargo xtask crash power`: the disk as it is at random instants, mounted again and opened.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{env, fs, io};

use anyhow::{Context, Result, anyhow, ensure};

use super::fault::{Kind, Tally};
use super::place::Place;
use super::rig::Cuts;
use super::rig::{Outer, Rig};
use super::victim::{self, Profile};
use crate::progress::{Progress, Stopwatch};
use xtask::needs;
use xtask::run::{self, program, skipped};

const WHAT: &str = "crash power";
/// How many images a disk that lies may get away with.
const CONTROL_IMAGES: u64 = 50;
/// What the disks of the controls do instead of a sync.
const LIES: [&str; 2] = ["never", "late"];
/// More faults than these say nothing new.
const FAULTS_SHOWN: usize = 20;

/// What a power cut needs that not every machine has, and this one lacks.
fn lacking() -> Option<String> {
    if !fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0) {
        return Some("mounting needs root".to_owned());
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("there are no loop devices".to_owned());
    }
    if let Err(error) = needs::for_power_cuts() {
        return Some(format!("{error:#}"));
    }
    if !program("unshare", ["--mount", "--propagation", "private", "true"]).succeeds() {
        return Some("a mount namespace of its own is not to be had (unshare --mount)".to_owned());
    }
    None
}

/// Cuts the power of victims, and says what came of it.
///
/// The work is done by a second process in a mount namespace of its own: however it ends, its mounts and loop devices end
/// with it.
pub(super) fn run(images: u64, seed: u64) -> Result<()> {
    if let Some(because) = lacking() {
        skipped(WHAT, &because);
        return Ok(());
    }
    let victim = victim::build(Profile::for_rounds(images))?;
    let place = Place::take()?;
    let us = env::current_exe().context("cannot tell where this program is")?;
    let namespace = ["--mount", "--propagation", "private", "--fork", "--kill-child", "--"];
    let (images, seed) = (images.to_string(), seed.to_string());
    let ask = ["crash", "power", &images, "--seed", &seed, "--inside"];
    let words = namespace.iter().map(Path::new).chain([us.as_path()]).chain(ask.iter().map(Path::new));
    program("unshare", words.chain([place.path(), Path::new("--victim"), &victim])).in_our_name()
}

/// The same, with mounts that nobody else sees.
pub(super) fn run_inside(place: &Path, victim: &Path, images: u64, seed: u64) -> Result<()> {
    end_with_our_parent();
    let (_outer, mut lanes) = match build(place, victim, seed) {
        Ok(built) => built,
        Err(error) => {
            skipped(WHAT, &format!("the file systems cannot be had: {error:#}"));
            return Ok(());
        }
    };
    run::started(&format!("{WHAT}: {images} images, seed {seed}"));
    let watch = Stopwatch::start();
    let (taken, tally) = take(&mut lanes, images)?;
    for fault in tally.faults.iter().take(FAULTS_SHOWN) {
        run::failed(&fault.to_string());
    }
    println!("{WHAT}: {taken} images, {:.1} a second: {tally}", watch.rate(taken));
    ensure!(tally.faults.is_empty(), "{WHAT}: {} faults; seed {seed}", tally.faults.len());
    for (cuts, lie) in lanes.iter_mut().zip(LIES) {
        control(cuts, lie)?;
    }
    run::passed(&format!("{WHAT}: {taken} images without a fault"));
    Ok(())
}

/// Two rigs side by side: while one waits for a mount, the other is busy.
fn build(place: &Path, victim: &Path, seed: u64) -> Result<(Outer, [Cuts; 2])> {
    let outer = Outer::build(place)?;
    let lane =
        |number| Ok(Cuts::new(Rig::build(&outer, number)?, victim.to_path_buf(), seed.wrapping_add(number)));
    let lanes: [Result<Cuts>; 2] = [0, 1].map(lane);
    let [first, second] = lanes;
    Ok((outer, [first?, second?]))
}

/// Shares the images out among the lanes.
fn take(lanes: &mut [Cuts; 2], images: u64) -> Result<(u64, Tally)> {
    let progress = Progress::new(WHAT, images);
    let shares = [images.div_ceil(2), images / 2];
    std::thread::scope(|scope| {
        let step = || progress.step();
        let started: Vec<_> = lanes
            .iter_mut()
            .zip(shares)
            .map(|(cuts, share)| scope.spawn(move || cuts.take(None, share, step)))
            .collect();
        let mut sum = (0, Tally::default());
        for lane in started {
            let (taken, tally) = lane.join().map_err(|_| anyhow!("a lane fell over"))??;
            sum.0 += taken;
            sum.1.add(tally);
        }
        Ok(sum)
    })
}

/// Our input ends when whoever started us does. Nobody would hear what came of the rest.
fn end_with_our_parent() {
    std::thread::spawn(|| {
        drop(io::copy(&mut io::stdin(), &mut io::sink()));
        std::process::exit(1);
    });
}

/// A disk that does not sync must be found out, or nothing above means anything: by what is lost, or by a log so full
/// of holes that it is refused.
fn control(cuts: &mut Cuts, lie: &str) -> Result<()> {
    let (taken, tally) = cuts.take(Some(lie), CONTROL_IMAGES, || {})?;
    let [lost, returned, refused] = [Kind::Lost, Kind::Returned, Kind::Refused].map(|kind| tally.count(kind));
    let found = format!("{lost} lost, {returned} returned, {refused} failed opens in {taken} images");
    ensure!(lost + refused > 0, "{WHAT}: control: a disk that syncs {lie} was not found out: {found}");
    println!("{WHAT}: control: a disk that syncs {lie} was found out: {found}");
    Ok(())
}
