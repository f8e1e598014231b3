//! `cargo xtask crash kill`: SIGKILL at random instants, round after round on one folder.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::fault::Kind;
use super::place::Place;
use super::victim::{self, Profile, SharedLedger, Victim};
use crate::dice::Dice;
use crate::progress::{Progress, Stopwatch};
use xtask::run;

/// A victim that has opened its folder lives this long at most.
const LIFE_MOST: Duration = Duration::from_millis(40);
/// One that is killed while it opens, this long.
const OPENING_MOST: Duration = Duration::from_millis(12);
/// So many in a hundred are killed while they open.
const KILLED_OPENING_PERCENT: usize = 15;
/// After so many faults it is clear that something is broken.
const FAULTS_MOST: usize = 20;
/// How often the control may miss: a slow machine can be so late that what was forgotten was past its retention.
const CONTROL_TRIES: u64 = 5;

/// Kills victims, and says what came of it.
pub(super) fn run(rounds: u64, seed: u64) -> Result<()> {
    let program = victim::build(Profile::for_rounds(rounds))?;
    let mut place = Place::take()?;
    run::started(&format!("crash kill: {rounds} rounds, seed {seed}"));
    let ledger = SharedLedger::default();
    let watch = Stopwatch::start();
    let folder = place.path().join("store");
    let done = kill_over_and_over(&program, &folder, rounds, seed, &ledger);
    let tally = std::mem::take(&mut ledger.lock().tally);
    for fault in tally.faults.iter().take(FAULTS_MOST) {
        run::failed(&fault.to_string());
    }
    if done.is_err() || !tally.faults.is_empty() {
        place.keep();
    }
    let rounds = done?;
    println!("crash kill: {rounds} rounds, {:.1} a second: {tally}", watch.rate(rounds));
    ensure!(tally.faults.is_empty(), "crash kill: {} faults; seed {seed}", tally.faults.len());
    second_process(&program, &folder)?;
    println!("crash kill: {}", control(&program, place.path(), seed)?);
    run::passed(&format!("crash kill: {rounds} rounds without a fault"));
    Ok(())
}

/// How many rounds there were: fewer than asked for if the store is clearly broken.
fn kill_over_and_over(
    program: &Path,
    folder: &Path,
    rounds: u64,
    seed: u64,
    ledger: &SharedLedger,
) -> Result<u64> {
    let mut dice = Dice::new(seed);
    let progress = Progress::new("crash kill", rounds);
    for round in 1..=rounds {
        kill_once(program, folder, &mut dice, ledger)?;
        progress.step();
        let ledger = ledger.lock();
        if ledger.tally.count(Kind::Refused) > 0 || ledger.tally.faults.len() > FAULTS_MOST {
            return Ok(round);
        }
    }
    // The last round is judged by an opening of its own.
    Victim::start(program, &["check"], folder, ledger)?.finish()?;
    Ok(rounds)
}

fn kill_once(program: &Path, folder: &Path, dice: &mut Dice, ledger: &SharedLedger) -> Result<()> {
    let (is_early, seed) = (dice.happens(KILLED_OPENING_PERCENT), dice.seed().to_string());
    let mut victim = Victim::start(program, &["run", "--seed", &seed], folder, ledger)?;
    if is_early {
        std::thread::sleep(dice.instant(OPENING_MOST));
    } else if victim.wait_until_looked()? {
        std::thread::sleep(dice.instant(LIFE_MOST));
    }
    victim.kill()
}

/// A folder serves one process: the second is refused, and told by whom.
fn second_process(program: &Path, folder: &Path) -> Result<()> {
    let (first_ledger, second_ledger) = (SharedLedger::default(), SharedLedger::default());
    let mut first = Victim::start(program, &["run"], folder, &first_ledger)?;
    ensure!(first.wait_until_looked()?, "the first process could not open the folder");
    let is_content = Victim::start(program, &["check"], folder, &second_ledger)?.finish()?;
    let expected = format!("in use by process {}", first.id());
    first.kill()?;
    let refusals = std::mem::take(&mut second_ledger.lock().tally.faults);
    let is_refused =
        refusals.iter().any(|fault| fault.kind == Kind::Refused && fault.what.contains(&expected));
    ensure!(!is_content && is_refused, "a second process was not refused with \"{expected}\": {refusals:?}");
    println!("crash kill: a second process is refused: {expected}");
    Ok(())
}

/// A victim that acknowledges what it never did must be found out, or nothing above means anything.
pub(super) fn control(program: &Path, place: &Path, seed: u64) -> Result<String> {
    for number in 1..=CONTROL_TRIES {
        let (folder, ledger) = (place.join(format!("control-{number}")), SharedLedger::default());
        let seed = seed.wrapping_add(number).to_string();
        let mut victim = Victim::start(program, &["run", "--forget", "--seed", &seed], &folder, &ledger)?;
        ensure!(victim.wait_until_looked()?, "the control could not open its folder");
        std::thread::sleep(LIFE_MOST);
        victim.kill()?;
        Victim::start(program, &["check"], &folder, &ledger)?.finish()?;
        let lost = ledger.lock().tally.count(Kind::Lost);
        if lost > 0 {
            return Ok(format!("control: of one acknowledgement without a write, {lost} was found lost"));
        }
    }
    anyhow::bail!("control: an acknowledgement without a write was not found in {CONTROL_TRIES} tries")
}
