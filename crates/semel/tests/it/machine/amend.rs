//! What may be noted in a record, and that no note moves the end of a lease or of a retention.

use std::sync::Arc;

use semel::Fingerprint;
use semel::clock::Timestamp;
use semel::machine::amend::{Stepped, count_duplicates, outcome_unknown, step};
use semel::machine::claim::{Ask, claim};
use semel::machine::settle::{hold, release};
use semel::machine::{Ruling, Write};
use semel::record::{Duplicates, MISMATCHED_FINGERPRINTS_MAX, Mismatches, Record, Running, State, Step};

use super::case::{DUPLICATES, Found, LEASE_END, MINE, Moment, NEW_REQUEST, OTHERS, Prints, record};
use super::claim::{for_each_case, plain_ask};
use super::expect::{self, NEXT_VERSION, stamped_at};

/// Holds the ends of whatever a note was written to against what they were before it.
fn check_that_nothing_moved(found: Found, write: Option<Write>, moment: Moment) {
    let Some(write) = write else { return };
    // Swept no earlier than it ends, and no later than it would have been without the note.
    let keep_until = write.keep.until(moment.now()).map(Timestamp::as_micros);
    assert_eq!(keep_until, found.life_end(), "{found:?} {moment:?}");
    let after = write.next.stamp(NEXT_VERSION, stamped_at(moment));
    assert_eq!(after.live_until().map(Timestamp::as_micros), found.life_end(), "{found:?} {moment:?}");
    if let State::Running(running) = &after.state {
        assert_eq!(running.lease_until().as_micros(), LEASE_END, "{found:?} {moment:?}");
    }
}

#[test]
fn a_step_is_stored_once_and_only_by_its_own_run() {
    let known = Step { name: "charge".into(), value: Arc::from(*b"another value") };
    let new = Step { name: "ship".into(), value: Arc::from(*b"s-1") };
    let mut combinations = 0;
    for found in Found::ALL {
        for (permit_id, moment) in [MINE, OTHERS].into_iter().flat_map(|p| Moment::ALL.map(|m| (p, m))) {
            let before = record(found, Prints::Same, 0);
            let runs = found.is_running() && !found.is_gone(moment) && permit_id == MINE;
            let case = (found, permit_id, moment);

            let answer = if runs { Stepped::Stored } else { Stepped::Lost };
            let ruling = step(before.as_ref(), permit_id, &known, moment.now());
            expect::check(ruling, &answer, None, moment, &case);

            let next = before.clone().filter(|_| runs).and_then(|mut next| {
                if let State::Running(Running { steps, .. }) = &mut next.state {
                    steps.push(new.clone());
                }
                expect::noted(found, next, moment)
            });
            let ruling = step(before.as_ref(), permit_id, &new, moment.now());
            check_that_nothing_moved(found, ruling.write.clone(), moment);
            expect::check(ruling, &answer, next, moment, &case);
            combinations += 2;
        }
    }
    println!("step: {combinations} combinations");
    assert_eq!(combinations, 288);
}

#[test]
fn a_run_may_note_that_its_outcome_is_unknown_and_nothing_else_changes() {
    let mut noted = 0;
    for found in Found::ALL {
        for (permit_id, moment) in [MINE, OTHERS].into_iter().flat_map(|p| Moment::ALL.map(|m| (p, m))) {
            let before = record(found, Prints::Same, 0);
            let runs = found.is_running() && !found.is_gone(moment) && permit_id == MINE;
            let ruling = outcome_unknown(before.as_ref(), permit_id, moment.now());
            assert_eq!(ruling.answer, if runs { Stepped::Stored } else { Stepped::Lost });
            assert_eq!(ruling.write.is_some(), runs, "{found:?} {moment:?}");
            check_that_nothing_moved(found, ruling.write.clone(), moment);
            let (Some(before), Some(write)) = (before, ruling.write) else { continue };
            let after = write.next.stamp(NEXT_VERSION, stamped_at(moment));
            assert_eq!((before.outcome_is_unknown(), after.outcome_is_unknown()), (false, true));
            // Readers of the steps do not see it.
            assert!(before.finished_steps().eq(after.finished_steps()));
            // The retry of a lost reply changes nothing.
            assert_eq!(
                outcome_unknown(Some(&after), permit_id, moment.now()),
                Ruling { answer: Stepped::Stored, write: None }
            );
            noted += 1;
        }
    }
    assert_eq!(noted, 16);
}

#[test]
fn that_an_outcome_is_unknown_is_said_of_one_run_and_of_no_later_state() {
    let write = |write: Option<Write>, moment| {
        Record::clone(&write.expect("writes").next.stamp(NEXT_VERSION, stamped_at(moment)))
    };
    let (good, lapsed) = (Moment::BeforeLeaseEnd, Moment::AfterLeaseEnd);
    for found in [Found::RunningRerun, Found::RunningHold] {
        let running = record(found, Prints::Same, 0).expect("runs");
        let unknown = write(outcome_unknown(Some(&running), MINE, good.now()).write, good);
        assert!(unknown.outcome_is_unknown());
        let ask = Ask { fingerprint: running.fingerprint, ..plain_ask() };
        let later = [
            write(claim(Some(&unknown), &ask, lapsed.now()).write, lapsed),
            write(release(Some(&unknown), MINE, "gave up", good.now()).write, good),
            write(hold(Some(&unknown), MINE, "who knows", good.now()).write, good),
        ];
        for next in later {
            assert!(!next.outcome_is_unknown(), "{next:?}");
            assert!(next.steps().iter().eq(running.steps()), "the steps of the work stay: {next:?}");
        }
    }
    let unknown = record(Found::RunningHold, Prints::Same, 0).expect("runs");
    let unknown = write(outcome_unknown(Some(&unknown), MINE, good.now()).write, good);
    let held = Arc::new(unknown).seen_at(lapsed.now());
    assert!(matches!(held.state, State::Held(_)) && !held.outcome_is_unknown());
}

#[test]
fn steps_are_stored_in_the_order_in_which_they_were_finished() {
    let mut found = record(Found::RunningRerun, Prints::Same, 0).unwrap();
    let now = Moment::BeforeLeaseEnd;
    for name in ["ship", "thank", "ship"] {
        let finished = Step { name: name.into(), value: Arc::from(*b"") };
        if let Some(write) = step(Some(&found), MINE, &finished, now.now()).write {
            found = Record::clone(&write.next.stamp(NEXT_VERSION, stamped_at(now)));
        }
    }
    let names: Vec<_> = found.steps().iter().map(|step| &*step.name).collect();
    assert_eq!(names, ["reserve", "charge", "ship", "thank"]);
}

#[test]
fn duplicates_are_added_to_any_live_record_and_to_no_other() {
    let at = |micros| Some(Timestamp::from_micros(micros));
    // The counted ones may have come before the last that is noted, after it, or at no known moment.
    let gathered = [(1_110, 1_120), (1_130, 1_130)];
    let mut combinations = 0;
    for (found, moment) in Found::ALL.into_iter().flat_map(|f| Moment::ALL.map(|m| (f, m))) {
        let before = record(found, Prints::Same, 0);
        let live = before.as_ref().filter(|_| !found.is_gone(moment));
        let cases = gathered.map(|(seen, last)| (at(seen), at(last))).into_iter().chain([(None, at(1_120))]);
        for (seen, last_seen_at) in cases {
            let next = live.and_then(|record| {
                let duplicates = Duplicates { count: 42, last_seen_at };
                expect::noted(found, Record { duplicates, ..record.clone() }, moment)
            });
            let seen = Duplicates { count: 40, last_seen_at: seen };
            let ruling = count_duplicates(before.as_ref(), seen, moment.now());
            check_that_nothing_moved(found, ruling.write.clone(), moment);
            expect::check(ruling, &(), next, moment, &(found, moment, seen));
            combinations += 1;
        }
    }
    println!("count_duplicates: {combinations} combinations");
    assert_eq!(combinations, 216);
}

#[test]
fn a_mismatch_moves_neither_the_end_of_the_lease_nor_of_the_retention() {
    let mut mismatches = 0;
    for_each_case(|case, found, ask| {
        if case.prints.differ() && case.found != Found::Released && !case.found.is_gone(case.moment) {
            let ruling = claim(found, ask, case.moment.now());
            check_that_nothing_moved(case.found, ruling.write, case.moment);
            mismatches += 1;
        }
    });
    println!("mismatch: {mismatches} combinations");
    assert_eq!(mismatches, 45_120);
}

#[test]
fn only_the_first_eight_distinct_fingerprints_are_kept_and_all_are_counted() {
    let moment = Moment::BeforeLeaseEnd;
    for found in [Found::RunningRerun, Found::RunningHold, Found::Done, Found::Held] {
        let mut ask = plain_ask();
        let mut now = record(found, Prints::Same, 0).unwrap();
        now.mismatches = Mismatches::default();
        for number in 0..24_u8 {
            // Each comes twice, so that what is known is met below the bound and at it.
            let other = Fingerprint::from_bytes([100 + number / 2; 32]);
            ask.fingerprint = Some(other);
            let write = claim(Some(&now), &ask, moment.now()).write.unwrap();
            now = Record::clone(&write.next.stamp(NEXT_VERSION, stamped_at(moment)));
            let kept = usize::from(number / 2 + 1).min(MISMATCHED_FINGERPRINTS_MAX);
            assert_eq!(now.mismatches.count, u64::from(number) + 1);
            let expected: Vec<_> = (100..).map(|n| Fingerprint::from_bytes([n; 32])).take(kept).collect();
            assert_eq!(now.mismatches.fingerprints, expected);
        }
    }
}

#[test]
fn counts_stay_at_their_end_instead_of_wrapping() {
    let moment = Moment::BeforeLeaseEnd;
    let full = Duplicates { count: u64::MAX, ..DUPLICATES };
    let found = Record {
        duplicates: full,
        mismatches: Mismatches { count: u64::MAX, fingerprints: Vec::new() },
        attempt: u32::MAX,
        ..record(Found::Done, Prints::Same, 0).unwrap()
    };
    let Ruling { write, .. } = count_duplicates(Some(&found), full, moment.now());
    assert_eq!(write.unwrap().next.unstamped().duplicates.count, u64::MAX);
    let mut ask = plain_ask();
    ask.fingerprint = Some(NEW_REQUEST);
    let write = claim(Some(&found), &ask, moment.now()).write.unwrap();
    assert_eq!(write.next.unstamped().mismatches.count, u64::MAX);
    assert_eq!(write.next.unstamped().mismatches.fingerprints, [NEW_REQUEST]);
    let released = Record { state: record(Found::Released, Prints::Same, 0).unwrap().state, ..found };
    let write = claim(Some(&released), &ask, moment.now()).write.unwrap();
    assert_eq!(write.next.unstamped().attempt, u32::MAX);
}
