//! Every file of a store with every damage.

use std::fs;

use super::damage::Damage;
use super::sample::{Ending, Sample, copy, names, scratch};
use super::verdict::{Seen, judge, judge_copy};
use crate::scale::failures;

/// All in the first segment, which is the one that is written.
const FEW: usize = 10;
/// Several sealed segments, with hints.
const MANY: usize = 60;

/// Every which damaged folder is repaired as well.
const COPY_STEP: u64 = 11;

/// What is done behind the damage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Witness {
    Kept,
    /// The file that says how far the log was acknowledged is the one of the empty store.
    Forgets,
}

/// Every damage of every file, judged on a copy of its own.
fn judge_all(sample: &Sample, witness: Witness) -> (Vec<String>, [usize; 3]) {
    let folder = sample.folder.path();
    let files = names(folder);
    let damages = |place: usize| Damage::all(folder, sample.yesterday.path(), &files, place);
    let all: Vec<(usize, Damage)> = (0..files.len())
        .flat_map(|place| damages(place).into_iter().map(move |damage| (place, damage)))
        .collect();
    let counts = std::sync::Mutex::new([0; 3]);
    let failures = failures(all.len() as u64, |number| {
        let (place, damage) = &all[usize::try_from(number).unwrap()];
        let (name, target) = (&*files[*place], scratch());
        copy(folder, target.path());
        damage.apply(target.path(), sample.yesterday.path(), name);
        if witness == Witness::Forgets {
            fs::copy(sample.empty.path().join("semel.tail"), target.path().join("semel.tail")).unwrap();
        }
        if number.is_multiple_of(COPY_STEP) {
            judge_copy(target.path(), &sample.acknowledged, &damage.files(name))
                .map_err(|what| format!("{name} {damage:?}, copied: {what}"))?;
        }
        let seen = judge(target.path(), &sample.acknowledged, &damage.files(name))
            .map_err(|what| format!("{name} {damage:?}: {what}"))?;
        counts.lock().unwrap()[seen as usize] += 1;
        Ok(())
    });
    (failures, counts.into_inner().unwrap())
}

fn is_whole_or_refused(records: usize, ending: Ending) {
    let sample = Sample::new(records, ending);
    let (failures, counts) = judge_all(&sample, Witness::Kept);
    println!(
        "{ending:?}, {} files: {} whole, {} with damaged records, {} refused, {} failures",
        names(sample.folder.path()).len(),
        counts[Seen::Whole as usize],
        counts[Seen::DamagedRecords as usize],
        counts[Seen::Refused as usize],
        failures.len()
    );
    assert!(failures.is_empty(), "{} failures: {failures:#?}", failures.len());
    assert!(counts[Seen::Refused as usize] > 30, "a table that is never refused proves nothing");
}

#[test]
fn any_damage_to_a_closed_store_of_one_segment_leaves_it_whole_or_refused() {
    is_whole_or_refused(FEW, Ending::Closed);
}

#[test]
fn any_damage_to_a_killed_store_of_one_segment_leaves_it_whole_or_refused() {
    is_whole_or_refused(FEW, Ending::Killed);
}

#[test]
fn any_damage_to_a_closed_store_of_many_segments_leaves_it_whole_or_refused() {
    is_whole_or_refused(MANY, Ending::Closed);
}

#[test]
fn any_damage_to_a_killed_store_of_many_segments_leaves_it_whole_or_refused() {
    is_whole_or_refused(MANY, Ending::Killed);
}

#[test]
fn without_the_witness_a_log_that_is_cut_short_goes_unnoticed_and_is_found_out() {
    for ending in [Ending::Closed, Ending::Killed] {
        let (failures, _) = judge_all(&Sample::new(FEW, ending), Witness::Forgets);
        let is_gone =
            |failure: &String| failure.contains("00000001.log") && failure.contains("without a word");
        assert!(failures.iter().any(is_gone), "{failures:#?}");
    }
}
