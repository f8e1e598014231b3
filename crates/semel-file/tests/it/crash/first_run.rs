//! The power goes while a store is made and written to for the first time, when there is least to hold on to.

use super::recorded::{KEYS, open, replay_each, survives};
use super::workload::Workload;
use crate::dice::Dice;
use crate::disk::{Image, SimulatedDisk, Syncs};
use crate::scale::failures;

/// How often each operation is cut.
const CUTS: u64 = 25;

/// A store that is made, takes one batch of many sectors, and is closed.
fn first_life() -> (Vec<Image>, Workload) {
    let disk = SimulatedDisk::new();
    let mut workload = Workload::new(11, KEYS);
    let store = open(&disk, workload.clock.clone()).unwrap();
    let batch = workload.touch_all(&store).unwrap();
    workload.carry(&batch, &store, &|| disk.operations()).unwrap();
    store.close().unwrap();
    (replay_each(&disk.journal()), workload)
}

#[test]
fn a_store_whose_first_run_is_torn_in_any_way_opens() {
    let (images, workload) = first_life();
    let failures = failures(images.len() as u64 * CUTS, |seed| {
        let operations = usize::try_from(seed / CUTS).unwrap();
        let mut dice = Dice::new(seed);
        let image = images[operations].cut(&mut dice);
        survives(image, Syncs::Honest, &workload.ledger.as_of(operations), &mut dice)
            .map_err(|what| format!("cut after operation {operations}: {what}"))
    });
    assert!(failures.is_empty(), "{failures:#?}");
}
