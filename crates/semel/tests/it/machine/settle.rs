//! The settle tables: complete, release, hold, renew and resolve in every state, by everyone, at every moment.

use std::time::Duration;

use semel::machine::settle::{
    Completed, HoldAnswer, ReleaseAnswer, Renewed, Resolution, Resolved, complete, hold, release, renew,
    resolve,
};
use semel::record::{PermitId, Record};

use super::case::{ATTEMPT, Found, MINE, Moment, OTHERS, Prints, first_outcome, other_outcome, record};
use super::expect;

/// Every record that a settle may find; fingerprints and pardons must not matter to it.
fn for_each_case(mut visit: impl FnMut(Found, Option<&Record>, PermitId, Moment)) {
    for found in Found::ALL {
        for (prints, attempts_forgiven) in [(Prints::Same, 0), (Prints::NoneOnRecord, 2)] {
            let record = record(found, prints, attempts_forgiven);
            for permit_id in [MINE, OTHERS] {
                for moment in Moment::ALL {
                    visit(found, record.as_ref(), permit_id, moment);
                }
            }
        }
    }
}

/// Running under this very permit, lapsed or not, and not past its life.
fn runs(found: Found, permit_id: PermitId, moment: Moment) -> bool {
    found.is_running() && !found.is_gone(moment) && permit_id == MINE
}

#[test]
fn complete_ends_its_own_run_and_otherwise_changes_nothing() {
    let mut combinations = 0;
    for_each_case(|found, before, permit_id, moment| {
        for outcome in [first_outcome(), other_outcome()] {
            let retried = found == Found::Done
                && !found.is_gone(moment)
                && permit_id == MINE
                && outcome == first_outcome();
            let (answer, next) = match before {
                Some(record) if runs(found, permit_id, moment) => {
                    (Completed::Done, expect::run_done(record, &outcome, moment))
                }
                _ if retried => (Completed::Done, None),
                _ => (Completed::Lost, None),
            };
            let ruling = complete(before, permit_id, &outcome, moment.now());
            expect::check(ruling, &answer, next, moment, &(found, permit_id, moment, outcome));
            combinations += 1;
        }
    });
    println!("complete: {combinations} combinations");
    assert_eq!(combinations, 432);
}

#[test]
fn release_gives_up_its_own_run_and_otherwise_changes_nothing() {
    let mut combinations = 0;
    for_each_case(|found, before, permit_id, moment| {
        let (answer, next) = match before {
            Some(record) if runs(found, permit_id, moment) => {
                let next = expect::released(record, "card declined", record.attempts_forgiven, moment);
                (ReleaseAnswer::Released, next)
            }
            _ => (ReleaseAnswer::NotHolding, None),
        };
        let ruling = release(before, permit_id, "card declined", moment.now());
        expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
        combinations += 1;
    });
    println!("release: {combinations} combinations");
    assert_eq!(combinations, 216);
}

#[test]
fn hold_keeps_its_own_run_for_a_person_and_otherwise_changes_nothing() {
    let mut combinations = 0;
    for_each_case(|found, before, permit_id, moment| {
        let (answer, next) = match before {
            Some(record) if runs(found, permit_id, moment) => {
                (HoldAnswer::Held, expect::held(record, "the provider said 500", moment))
            }
            _ => (HoldAnswer::NotHolding, None),
        };
        let ruling = hold(before, permit_id, "the provider said 500", moment.now());
        expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
        combinations += 1;
    });
    println!("hold: {combinations} combinations");
    assert_eq!(combinations, 216);
}

#[test]
fn renew_starts_its_own_lease_anew_and_otherwise_changes_nothing() {
    let lease = Duration::from_micros(33);
    let mut combinations = 0;
    for_each_case(|found, before, permit_id, moment| {
        let (answer, next) = match before {
            Some(record) if runs(found, permit_id, moment) => {
                (Renewed::Renewed, expect::renewed(record, lease, moment))
            }
            _ => (Renewed::Lost, None),
        };
        let ruling = renew(before, permit_id, lease, moment.now());
        expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
        combinations += 1;
    });
    println!("renew: {combinations} combinations");
    assert_eq!(combinations, 216);
}

#[test]
fn resolve_settles_a_held_record_and_otherwise_changes_nothing() {
    let mut combinations = 0;
    for_each_case(|found, before, permit_id, moment| {
        for outcome in [first_outcome(), other_outcome()] {
            let retried = found == Found::Done
                && !found.is_gone(moment)
                && permit_id == MINE
                && outcome == first_outcome();
            let (answer, next) = match before {
                Some(record) if found == Found::Held => {
                    (Resolved::Resolved, expect::done_at_once(record, permit_id, &outcome, moment))
                }
                _ if retried => (Resolved::Resolved, None),
                _ => (Resolved::NotHeld, None),
            };
            let ruling = resolve(before, permit_id, &Resolution::Done(outcome), moment.now());
            expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
            combinations += 1;
        }
        let (answer, next) = match before {
            Some(record) if found == Found::Held => {
                (Resolved::Resolved, expect::released(record, "it never left", ATTEMPT, moment))
            }
            _ => (Resolved::NotHeld, None),
        };
        let ruling =
            resolve(before, permit_id, &Resolution::Release { reason: "it never left".into() }, moment.now());
        expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
        combinations += 1;
    });
    println!("resolve: {combinations} combinations");
    assert_eq!(combinations, 648);
}
