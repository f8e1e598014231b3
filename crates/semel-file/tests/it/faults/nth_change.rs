//! A call that changes something fails: every one of a run, in every way.

use std::sync::Arc;

use semel::store::{Store, Swap, SwapReply};
use semel::{ErrorKind, Key};
use semel_file::FileStore;
use semel_testkit::sample;

use crate::crash::{KEYS, Workload, open, survives};
use crate::dice::Dice;
use crate::disk::{Calls, Failed, FailingDisk, Failure, SimulatedDisk, Survival, Syncs};
use crate::scale::failures;
use crate::sync::ready;

const STEPS: usize = 90;
const SEED: u64 = 3;

/// How many calls a run without failures makes.
fn calls() -> u64 {
    let disk = FailingDisk::new(Arc::new(SimulatedDisk::new()));
    let mut workload = Workload::new(SEED, KEYS);
    let store = open(&disk, workload.clock.clone()).unwrap();
    workload.run(STEPS, &store, || 0).unwrap();
    drop(store);
    disk.made(Calls::Changes)
}

/// A run in which the nth call fails: what was acknowledged before is there afterwards, and nothing is after it.
fn run(nth: u64, failure: Failure) -> Result<(), String> {
    let below = SimulatedDisk::new();
    let disk = FailingDisk::new(Arc::new(below.clone()));
    disk.fail_at(Calls::Changes, nth, failure);
    let mut workload = Workload::new(SEED, KEYS);
    match open(&disk, workload.clock.clone()) {
        Ok(store) => {
            let ended = workload.run(STEPS, &store, || below.operations());
            if let Some(failed) = disk.failed() {
                judge(&failed, ended, &store).map_err(|what| format!("{failed:?}: {what}"))?;
            }
        }
        Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Full) => {}
        Err(error) => return Err(format!("{:?}: not opened for the wrong reason: {error:?}", disk.failed())),
    }
    let expected = workload.ledger.as_of(usize::MAX);
    let mut dice = Dice::new(nth);
    // The process starts anew and finds what the machine still remembers; or the machine does, and finds less.
    for survival in [Survival::All, if nth.is_multiple_of(2) { Survival::Nothing } else { Survival::Any }] {
        let image = below.image().cut_to(survival, &mut dice);
        survives(image, Syncs::Honest, &expected, &mut dice)
            .map_err(|what| format!("{:?}, {survival:?}: {what}", disk.failed()))?;
    }
    Ok(())
}

/// After a failed write or sync of the log nothing is acknowledged: the store says why until it is opened again. What
/// only prepares or tidies up may fail, and so may what had no room before anything was written; then the store goes on.
///
/// Whether somebody was told that nothing happened, and it had, is seen when the disk is opened again.
fn judge(failed: &Failed, ended: semel::Result<()>, store: &FileStore) -> Result<(), String> {
    let must_stop = failed.is_of_the_log() && !failed.for_want_of_room;
    match ended {
        Ok(()) if must_stop => Err("the store went on".to_owned()),
        Ok(()) => Ok(()),
        Err(error) if !matches!(error.kind(), ErrorKind::Unknown | ErrorKind::Unavailable) => {
            Err(format!("a failed call was told as: {error:?}"))
        }
        Err(error) if failed.for_want_of_room && error.to_string().contains("the disk is full") => Ok(()),
        Err(_) => says_why(store),
    }
}

/// Every later ask is refused, with the reason.
fn says_why(store: &FileStore) -> Result<(), String> {
    for number in 0..3 {
        let key = Key::scoped(["faults"], "charge", &format!("late-{number}")).unwrap();
        let write = sample::running(&sample::ask(&key)).unwrap();
        let swap = Swap { expected: None, next: write.next, keep: write.keep };
        match ready(store.swap([swap].into())) {
            Ok(answer) => match answer.value.first() {
                Some(SwapReply::Swapped(_)) => return Err("a later claim was acknowledged".to_owned()),
                other => return Err(format!("a later claim was answered: {other:?}")),
            },
            Err(error) if error.kind() != ErrorKind::Unavailable => {
                return Err(format!("a later claim was told: {error:?}"));
            }
            Err(error) if !format!("{error:?}").contains("os error") => {
                return Err(format!("a later claim was not told why: {error:?}"));
            }
            Err(_) => {}
        }
    }
    Ok(())
}

fn fail_everywhere(failure: Failure) -> Vec<String> {
    let calls = calls();
    let failures = failures(calls, |number| run(number + 1, failure));
    println!("{failure:?} at each of {calls} calls: {} failures", failures.len());
    failures
}

#[test]
fn after_a_refused_call_nothing_is_acknowledged_and_nothing_is_lost() {
    let failures = fail_everywhere(Failure::Refused);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn after_a_call_for_which_there_is_no_room_nothing_is_lost() {
    let failures = fail_everywhere(Failure::NoRoom);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn after_a_short_write_nothing_is_acknowledged_and_nothing_is_lost() {
    let failures = fail_everywhere(Failure::Short);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn after_a_call_that_took_and_said_otherwise_nothing_is_lost() {
    let failures = fail_everywhere(Failure::Late);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn calls_that_fail_without_a_word_are_found_out() {
    let failures = fail_everywhere(Failure::Hidden);
    println!("{failures:#?}");
    assert!(!failures.is_empty());
}
