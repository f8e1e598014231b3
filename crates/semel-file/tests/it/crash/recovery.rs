//! The power goes while a store is opened after a power cut, and once more while it is opened after that.

use semel::ErrorKind;
use semel_testkit::ManualClock;

use super::recorded::{open, recorded, replay, survives};
use crate::dice::Dice;
use crate::disk::{Image, SimulatedDisk, Syncs};
use crate::scale::{failures, from_env};

/// How often, unless `SEMEL_RECOVERIES` says.
const RECOVERIES: u64 = 50;
/// How many of them are of the same run.
const CUTS_A_RUN: u64 = 50;

/// The disk as it is found after the power went at some operation of opening it.
fn cut_while_opening(
    image: &Image,
    syncs: Syncs,
    clock: &ManualClock,
    dice: &mut Dice,
) -> Result<Image, String> {
    let whole = SimulatedDisk::holding(image.clone(), syncs);
    let store = open(&whole, clock.clone()).map_err(|error| format!("does not open: {error:?}"))?;
    let operations = whole.operations() as u64;
    whole.power_goes_after(0);
    drop(store);

    let disk = SimulatedDisk::holding(image.clone(), syncs);
    disk.power_goes_after(dice.number(0, operations));
    match open(&disk, clock.clone()) {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            Err(format!("takes a lost power for damage: {error:?}"))
        }
        opened => {
            let found = disk.cut(dice).image();
            drop(opened);
            Ok(found)
        }
    }
}

fn cut_two_deep(seed: u64, syncs: Syncs) -> Result<(), String> {
    let run = recorded(seed / CUTS_A_RUN);
    let mut dice = Dice::new(seed);
    let operations = dice.place(run.journal.len());
    let expected = run.ledger.as_of(operations);
    let clock = ManualClock::at(expected.clock.as_micros());
    let found = replay(&run.journal[..operations], syncs).cut(&mut dice);
    let found =
        cut_while_opening(&found, syncs, &clock, &mut dice).map_err(|what| format!("first: {what}"))?;
    let found =
        cut_while_opening(&found, syncs, &clock, &mut dice).map_err(|what| format!("second: {what}"))?;
    survives(found, syncs, &expected, &mut dice)
}

#[test]
fn a_cut_during_the_recovery_from_a_cut_during_recovery_loses_nothing() {
    let recoveries = from_env("SEMEL_RECOVERIES", RECOVERIES);
    let failures = failures(recoveries, |seed| cut_two_deep(seed, Syncs::Honest));
    println!("{recoveries} recoveries, {} failures", failures.len());
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_disk_whose_syncs_do_nothing_does_not_recover_from_two_cuts() {
    let failures = failures(RECOVERIES, |seed| cut_two_deep(seed, Syncs::Lying));
    println!("{failures:#?}");
    assert!(!failures.is_empty());
}
