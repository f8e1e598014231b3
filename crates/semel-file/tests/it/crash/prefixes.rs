//! The power goes after every single operation of a run.

use super::recorded::{recorded, replay_each, survives};
use crate::dice::Dice;
use crate::disk::{Survival, Syncs};
use crate::scale::failures;

fn cut_everywhere(survival: Survival) -> Vec<String> {
    let run = recorded(1);
    let images = replay_each(&run.journal);
    failures(images.len() as u64, |number| {
        let operations = usize::try_from(number).unwrap();
        let mut dice = Dice::new(number);
        let image = images[operations].cut_to(survival, &mut dice);
        survives(image, Syncs::Honest, &run.ledger.as_of(operations), &mut dice)
    })
}

#[test]
fn every_prefix_of_the_operations_opens_with_everything_that_was_acknowledged() {
    let failures = cut_everywhere(Survival::All);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn what_was_synced_is_enough_after_every_operation() {
    let failures = cut_everywhere(Survival::Nothing);
    assert!(failures.is_empty(), "{failures:#?}");
}
