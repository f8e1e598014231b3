//! `cargo xtask crash soak`: a store in a folder for as long as asked, under load, swept, killed, verified and opened again.
//!
//! Lives are longer than in `crash kill`, so that segments are filled, hinted and reclaimed in each; after every kill
//! each byte of the folder is verified, and between lives the machine's clock may have gone ahead.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use semel_file::check::verify;

use super::fault::Kind;
use super::kill::control;
use super::place::Place;
use super::victim::{self, Profile, SharedLedger, Victim};
use crate::dice::Dice;
use crate::progress::{Progress, Stopwatch};
use xtask::run;

/// From this long on a release build of the victim is worth its time.
const LONG: Duration = Duration::from_mins(10);
/// A victim that has opened its folder lives this long at most.
const LIFE_MOST: Duration = Duration::from_millis(1_500);
/// So many in a hundred live a tenth of it only, and so many start on a clock that has gone ahead.
const SHORT_LIVES_PERCENT: usize = 50;
const CLOCK_JUMPS_PERCENT: usize = 20;
const CLOCK_JUMP_MOST: Duration = Duration::from_secs(20);
/// In the header of a segment, behind its magic number.
const DAMAGED_BYTE: usize = 20;
/// After so many faults it is clear that something is broken.
const FAULTS_MOST: usize = 20;

/// What a soak did beside what its ledger tells.
#[derive(Debug, Default)]
struct Soaked {
    lives: u64,
    verified: u64,
    clock_jumps: u64,
    clock_ahead: Duration,
}

/// Soaks a store for so long, and says what came of it.
pub(super) fn run(span: Duration, seed: u64) -> Result<()> {
    let program = victim::build(if span < LONG { Profile::Dev } else { Profile::Release })?;
    let mut place = Place::take()?;
    run::started(&format!("crash soak: {} s, seed {seed}", span.as_secs()));
    let (folder, ledger, mut soaked) =
        (place.path().join("store"), SharedLedger::default(), Soaked::default());
    let done = soak(&program, &folder, span, &mut Dice::new(seed), &ledger, &mut soaked);
    let tally = std::mem::take(&mut ledger.lock().tally);
    for fault in tally.faults.iter().take(FAULTS_MOST) {
        run::failed(&fault.to_string());
    }
    if done.is_err() || !tally.faults.is_empty() {
        place.keep();
    }
    done.with_context(|| format!("crash soak: after {} lives; seed {seed}", soaked.lives))?;
    let Soaked { lives, verified, clock_jumps, .. } = soaked;
    println!("crash soak: {lives} lives, {verified} times verified, {clock_jumps} clock jumps: {tally}");
    ensure!(tally.faults.is_empty(), "crash soak: {} faults; seed {seed}", tally.faults.len());
    println!("crash soak: {}", control(&program, place.path(), seed)?);
    damage_is_found(&folder)?;
    run::passed(&format!("crash soak: {} s without a fault", span.as_secs()));
    Ok(())
}

fn soak(
    program: &Path,
    folder: &Path,
    span: Duration,
    dice: &mut Dice,
    ledger: &SharedLedger,
    soaked: &mut Soaked,
) -> Result<()> {
    let (watch, progress) = (Stopwatch::start(), Progress::new("crash soak, seconds", span.as_secs()));
    let mut shown = 0;
    while watch.elapsed() < span {
        live_once(program, folder, dice, ledger, soaked)?;
        is_whole(folder).context("after a kill")?;
        soaked.verified += 1;
        while shown < watch.elapsed().as_secs() {
            progress.step();
            shown += 1;
        }
        let ledger = ledger.lock();
        if ledger.tally.count(Kind::Refused) > 0 || ledger.tally.faults.len() > FAULTS_MOST {
            return Ok(());
        }
    }
    let ahead = soaked.clock_ahead.as_millis().to_string();
    // The last life is judged by an opening of its own, which ends cleanly.
    Victim::start(program, &["check", "--clock-ahead-ms", &ahead], folder, ledger)?.finish()?;
    is_whole(folder).context("after a clean stop")?;
    soaked.verified += 1;
    Ok(())
}

fn live_once(
    program: &Path,
    folder: &Path,
    dice: &mut Dice,
    ledger: &SharedLedger,
    soaked: &mut Soaked,
) -> Result<()> {
    if dice.happens(CLOCK_JUMPS_PERCENT) {
        soaked.clock_ahead += dice.instant(CLOCK_JUMP_MOST);
        soaked.clock_jumps += 1;
    }
    let (seed, ahead) = (dice.seed().to_string(), soaked.clock_ahead.as_millis().to_string());
    let args = ["run", "--seed", &seed, "--clock-ahead-ms", &ahead];
    let mut victim = Victim::start(program, &args, folder, ledger)?;
    if victim.wait_until_looked()? {
        let most = if dice.happens(SHORT_LIVES_PERCENT) { LIFE_MOST / 10 } else { LIFE_MOST };
        std::thread::sleep(dice.instant(most));
    }
    soaked.lives += 1;
    victim.kill()
}

/// Reads every byte of what a victim left; `semel file verify` does the same.
fn is_whole(folder: &Path) -> Result<()> {
    let findings = verify(folder, |_, _| ()).map_err(|error| anyhow::anyhow!("{error}"))?;
    ensure!(findings.is_whole(), "the folder is damaged: {findings:?}");
    Ok(())
}

/// Control: a byte that is not as it was written must be found, or to verify means nothing.
fn damage_is_found(folder: &Path) -> Result<()> {
    let segments = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let segments = segments.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    let oldest = segments.min().context("a store has a segment")?;
    let mut bytes = fs::read(&oldest)?;
    let byte = bytes.get_mut(DAMAGED_BYTE).context("a segment has a header")?;
    *byte ^= 1;
    fs::write(&oldest, &bytes)?;
    ensure!(is_whole(folder).is_err(), "control: verify does not find a flipped bit in {}", oldest.display());
    println!("crash soak: control: a flipped bit was found");
    Ok(())
}
