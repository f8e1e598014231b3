//! A read fails: it must never be taken for the end of the log, or for a record that is not there.

use std::sync::Arc;

use semel::ErrorKind;
use semel_testkit::ManualClock;

use crate::crash::{Expected, KEYS, Workload, open, survives};
use crate::dice::Dice;
use crate::disk::{Calls, FailingDisk, Failure, Image, SimulatedDisk, Survival, Syncs};
use crate::scale::failures;
use crate::sync::loaded;

const STEPS: usize = 150;

/// How the store was stopped before.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Clean,
    PowerCut,
}

fn written(ending: Ending) -> (Image, Expected) {
    let disk = SimulatedDisk::new();
    let mut workload = Workload::new(5, KEYS);
    let store = open(&disk, workload.clock.clone()).unwrap();
    workload.run(STEPS, &store, || disk.operations()).unwrap();
    if ending == Ending::Clean {
        store.close().unwrap();
    } else {
        disk.power_goes_after(0);
    }
    (disk.image().cut_to(Survival::Nothing, &mut Dice::new(0)), workload.ledger.as_of(usize::MAX))
}

fn failing(image: &Image) -> (SimulatedDisk, FailingDisk) {
    let below = SimulatedDisk::holding(image.clone(), Syncs::Honest);
    (below.clone(), FailingDisk::new(Arc::new(below)))
}

fn clock(expected: &Expected) -> ManualClock {
    ManualClock::at(expected.clock.as_micros())
}

/// Opens with the nth read failing: refused, or nothing was lost by it; and the log is as good as before.
fn open_with(nth: u64, failure: Failure, image: &Image, expected: &Expected) -> Result<(), String> {
    let (below, disk) = failing(image);
    disk.fail_at(Calls::Reads, nth, failure);
    match open(&disk, clock(expected)) {
        Ok(store) => expected.check(&store).map_err(|what| format!("{:?}: {what}", disk.failed()))?,
        Err(error) if error.kind() == ErrorKind::Unavailable => {}
        Err(error) => return Err(format!("{:?}: a failed read was taken for: {error:?}", disk.failed())),
    }
    survives(below.image(), Syncs::Honest, expected, &mut Dice::new(nth))
        .map_err(|what| format!("{:?}, opened once more: {what}", disk.failed()))
}

fn fail_everywhere(ending: Ending, failure: Failure) -> Vec<String> {
    let (image, expected) = written(ending);
    let (_, disk) = failing(&image);
    drop(open(&disk, clock(&expected)).unwrap());
    let reads = disk.made(Calls::Reads);
    let failures = failures(reads, |number| open_with(number + 1, failure, &image, &expected));
    println!("{failure:?} at each of {reads} reads: {} failures", failures.len());
    failures
}

#[test]
fn a_read_that_fails_while_a_closed_store_is_opened_is_never_the_end_of_the_log() {
    let failures = fail_everywhere(Ending::Clean, Failure::Refused);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_read_that_fails_during_recovery_is_never_the_end_of_the_log() {
    let failures = fail_everywhere(Ending::PowerCut, Failure::Refused);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn reads_that_find_nothing_without_a_word_are_found_out() {
    let failures = fail_everywhere(Ending::PowerCut, Failure::Hidden);
    println!("{failures:#?}");
    assert!(!failures.is_empty());
}

#[test]
fn a_record_that_cannot_be_read_is_an_error_and_not_absent() {
    let (image, expected) = written(Ending::Clean);
    let (_, disk) = failing(&image);
    let store = open(&disk, clock(&expected)).unwrap();
    let mut failed = 0;
    for id in expected.lives.keys() {
        let found = loaded(&store, vec![*id]).unwrap().value;
        disk.fail_at(Calls::Reads, 1, Failure::Refused);
        match loaded(&store, vec![*id]) {
            Ok(again) => assert_eq!(again.value, found),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
                failed += 1;
            }
        }
        disk.heal();
        // A read that failed once is no reason to refuse the next.
        assert_eq!(loaded(&store, vec![*id]).unwrap().value, found);
    }
    assert!(failed > 10, "{failed}");
}
