//! The power goes anywhere, and chance decides what is left of what was not synced.

use super::recorded::{recorded, replay, survives};
use crate::dice::Dice;
use crate::disk::Syncs;
use crate::scale::{failures, from_env};

/// How often the power is cut, unless `SEMEL_CUTS` says.
const CUTS: u64 = 400;
/// How many of them are of the same run.
const CUTS_A_RUN: u64 = 200;

fn cut(seed: u64, syncs: Syncs) -> Result<(), String> {
    let run = recorded(seed / CUTS_A_RUN);
    let mut dice = Dice::new(seed);
    let operations = dice.place(run.journal.len());
    let image = replay(&run.journal[..operations], syncs).cut(&mut dice);
    survives(image, syncs, &run.ledger.as_of(operations), &mut dice)
        .map_err(|what| format!("cut after operation {operations}: {what}"))
}

#[test]
fn no_subset_of_what_was_not_synced_loses_what_was_acknowledged() {
    let cuts = from_env("SEMEL_CUTS", CUTS);
    let failures = failures(cuts, |seed| cut(seed, Syncs::Honest));
    println!("{cuts} cuts, {} failures", failures.len());
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_disk_whose_syncs_do_nothing_is_found_to_lose_what_was_acknowledged() {
    let failures = failures(CUTS, |seed| cut(seed, Syncs::Lying));
    println!("{failures:#?}");
    assert!(!failures.is_empty());
}
