//! The settle tables: complete, release, hold, renew and resolve in every state, by everyone, at every moment.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::machine::Write;
use semel::machine::claim::{Ask, Claimed, PROBE_PAUSE, Probe, claim};
use semel::machine::settle::{
    Completed, GIVEN_BACK_KEEP, HoldAnswer, Mended, Proof, ReleaseAnswer, Renewed, Resolution, Resolved,
    complete, give_back, give_back_unheard, hold, mend, release, renew, resolve, revoke,
};
use semel::record::{AttemptEnd, HISTORY_MAX, HoldReason, Keep, PermitId, Record, State, Version};

use super::case::{
    FENCE, Found, MINE, Moment, OTHERS, Prints, RETENTION, first_outcome, other_outcome, record,
};
use super::expect;

/// Every record that a settle may find; fingerprints and forgiven attempts must not matter to it.
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
    assert_eq!(combinations, 576);
}

#[test]
fn release_gives_up_its_own_run_and_otherwise_changes_nothing() {
    let mut combinations = 0;
    for_each_case(|found, before, permit_id, moment| {
        let retried = found == Found::Released && !found.is_gone(moment) && permit_id == MINE;
        let (answer, next) = match before {
            Some(record) if runs(found, permit_id, moment) => {
                (ReleaseAnswer::Released, expect::released(record, "card declined", moment))
            }
            _ if retried => (ReleaseAnswer::Released, None),
            _ => (ReleaseAnswer::NotHolding, None),
        };
        let ruling = release(before, permit_id, "card declined", moment.now());
        expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
        combinations += 1;
    });
    println!("release: {combinations} combinations");
    assert_eq!(combinations, 288);
}

/// Every record that a run may be given back from: first and later attempts, with steps and without, of short and long
/// retention.
fn for_each_given_back(mut visit: impl FnMut(Found, Option<&Record>, PermitId, Moment)) {
    for_each_case(|found, before, permit_id, moment| {
        for attempt in [1, 2] {
            for steps in [Vec::new(), super::case::steps()] {
                for retention in [RETENTION, GIVEN_BACK_KEEP.saturating_mul(2)] {
                    let mut before = before.cloned();
                    if let Some(Record { state: State::Running(running), .. }) = &mut before {
                        running.steps.clone_from(&steps);
                    }
                    let before = before.map(|record| Record { attempt, retention, ..record });
                    visit(found, before.as_ref(), permit_id, moment);
                }
            }
        }
    });
}

/// What a run that was given back leaves: a first attempt without steps does not count, and is soon gone.
fn given_back(record: &Record, reason: &str, moment: Moment) -> expect::Expected {
    let (next, keep) = expect::released_with(record.steps().to_vec(), record, reason, moment)?;
    if record.attempt != 1 || !record.steps().is_empty() {
        return Some((next, keep));
    }
    let retention = record.retention.min(GIVEN_BACK_KEEP);
    Some((Record { attempt: 0, retention, ..next }, Keep::For(retention)))
}

#[test]
fn what_is_given_back_is_forgotten_only_if_there_is_nothing_to_remember() {
    let (mut combinations, mut forgotten) = (0, 0);
    for_each_given_back(|found, before, permit_id, moment| {
        let is_live = before.is_some_and(|record| record.is_live(moment.now()));
        let (answer, next) = match before {
            Some(record) if found.is_running() && is_live && permit_id == MINE => {
                (ReleaseAnswer::Released, given_back(record, "answered 401", moment))
            }
            Some(_) if found == Found::Released && is_live && permit_id == MINE => {
                (ReleaseAnswer::Released, None)
            }
            _ => (ReleaseAnswer::NotHolding, None),
        };
        forgotten += usize::from(next.as_ref().is_some_and(|(next, _)| next.attempt == 0));
        let ruling = give_back(before, permit_id, "answered 401", moment.now());
        expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
        combinations += 1;
    });
    println!("give back: {combinations} combinations, {forgotten} forgotten");
    assert_eq!((combinations, forgotten > 0), (2_304, true));
}

#[test]
fn a_run_that_its_caller_never_heard_of_is_given_back_only_if_nothing_was_written_since() {
    for_each_given_back(|found, before, permit_id, moment| {
        for version in [FENCE, Version::new(FENCE.get() + 1)] {
            let before = before.map(|record| Record { version, ..record.clone() });
            let is_live = before.as_ref().is_some_and(|record| record.is_live(moment.now()));
            let (answer, next) = match &before {
                Some(record) if found.is_running() && is_live && permit_id == MINE && version == FENCE => {
                    (ReleaseAnswer::Released, given_back(record, "never started", moment))
                }
                _ => (ReleaseAnswer::NotHolding, None),
            };
            let ruling = give_back_unheard(before.as_ref(), permit_id, moment.now());
            expect::check(ruling, &answer, next, moment, &(found, permit_id, moment, version));
        }
    });
}

#[test]
fn a_claim_after_a_run_that_was_given_back_is_a_first_attempt_again() {
    let now = Moment::BeforeLeaseEnd;
    let stamp = |write: Option<Write>| Record::clone(&write.unwrap().next.stamp(Version::new(9), now.now()));
    let ask = Ask { attempts_max: Some(1), ..super::claim::plain_ask() };
    let mut run = stamp(claim(None, &ask, now.now()).write);
    for _ in 0..3 {
        let left = stamp(give_back(Some(&run), OTHERS, "answered 401", now.now()).write);
        assert_eq!((left.attempt, left.history().count()), (0, 0));
        // Its own retry is answered as long as the record is there.
        let retried = give_back(Some(&left), OTHERS, "answered 401", now.now());
        assert_eq!((retried.answer, retried.write), (ReleaseAnswer::Released, None));
        run = stamp(claim(Some(&left), &ask, now.now()).write);
        assert_eq!((run.attempt, run.past_attempts.len(), run.retention), (1, 0, ask.retention));
    }
}

#[test]
fn hold_keeps_its_own_run_for_a_person_and_otherwise_changes_nothing() {
    let mut combinations = 0;
    for_each_case(|found, before, permit_id, moment| {
        let (answer, next) = match before {
            Some(record) if runs(found, permit_id, moment) => {
                let reason = HoldReason::Unknown("the provider said 500".into());
                (HoldAnswer::Held, expect::held(record, reason, moment))
            }
            _ if found.is_held() && permit_id == MINE => (HoldAnswer::Held, None),
            _ => (HoldAnswer::NotHolding, None),
        };
        let ruling = hold(before, permit_id, "the provider said 500", moment.now());
        expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
        combinations += 1;
    });
    println!("hold: {combinations} combinations");
    assert_eq!(combinations, 288);
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
            _ if found == Found::Done && !found.is_gone(moment) && permit_id == MINE => (Renewed::Done, None),
            _ => (Renewed::Lost, None),
        };
        let ruling = renew(before, permit_id, lease, moment.now());
        expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
        combinations += 1;
    });
    println!("renew: {combinations} combinations");
    assert_eq!(combinations, 288);
}

/// Held, or lapsed under hold: no claim has to come first.
fn is_held(found: Found, moment: Moment) -> bool {
    found.is_held() || (found == Found::RunningHold && moment.lease_lapsed())
}

#[test]
fn resolve_settles_what_is_held_and_otherwise_changes_nothing() {
    let mut combinations = 0;
    for_each_case(|found, before, permit_id, moment| {
        let is_retry = |settled| found == settled && !found.is_gone(moment) && permit_id == MINE;
        for outcome in [first_outcome(), other_outcome()] {
            let (answer, next) = match before {
                Some(record) if is_held(found, moment) => {
                    let next = expect::decided_done(permit_id, found, record, &outcome, moment);
                    (Resolved::Resolved, next)
                }
                _ if is_retry(Found::Done) && outcome == first_outcome() => (Resolved::Resolved, None),
                _ => (Resolved::NotHeld, None),
            };
            let ruling = resolve(before, permit_id, &Resolution::Done(outcome), moment.now());
            expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
            combinations += 1;
        }
        let (answer, next) = match before {
            Some(record) if is_held(found, moment) => {
                let next = expect::released_by(permit_id, found, record, "it never left", moment);
                (Resolved::Resolved, next)
            }
            _ if is_retry(Found::Released) => (Resolved::Resolved, None),
            _ => (Resolved::NotHeld, None),
        };
        let ruling =
            resolve(before, permit_id, &Resolution::Release { reason: "it never left".into() }, moment.now());
        expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
        combinations += 1;
    });
    println!("resolve: {combinations} combinations");
    assert_eq!(combinations, 864);
}

#[test]
fn revoke_takes_just_the_run_that_was_shown_from_its_caller() {
    const OPERATOR: PermitId = PermitId::new(0xC);
    let mut combinations = 0;
    for_each_case(|found, before, permit_id, moment| {
        for by in [OPERATOR, MINE] {
            let run = Proof { permit_id, fence: Some(FENCE) };
            let (answer, next) = match before {
                Some(record) if runs(found, permit_id, moment) => {
                    (ReleaseAnswer::Released, expect::revoked(by, record, "stuck", moment))
                }
                _ if found == Found::Released && !found.is_gone(moment) && by == MINE => {
                    (ReleaseAnswer::Released, None)
                }
                _ => (ReleaseAnswer::NotHolding, None),
            };
            let ruling = revoke(before, run, by, "stuck", moment.now());
            expect::check(ruling, &answer, next, moment, &(found, permit_id, by, moment));
            combinations += 1;
        }
    });
    assert_eq!(combinations, 576);
}

#[test]
fn mend_completes_what_still_runs_or_has_lapsed_under_the_permit_of_its_sibling() {
    let mut combinations = 0;
    for_each_case(|found, before, permit_id, moment| {
        let lapsed_or_running = found.is_running() || matches!(found, Found::Held | Found::HeldProbed);
        let (answer, next) = match before {
            Some(record) if lapsed_or_running && !found.is_gone(moment) && permit_id == MINE => {
                (Mended::Done, expect::run_done(record, &first_outcome(), moment))
            }
            _ => (Mended::Unrelated, None),
        };
        let ruling = mend(before, permit_id, &first_outcome(), moment.now());
        expect::check(ruling, &answer, next, moment, &(found, permit_id, moment));
        combinations += 1;
    });
    assert_eq!(combinations, 288);
}

#[test]
fn a_held_record_is_probed_again_after_ten_seconds_and_not_before() {
    let probed_at = Timestamp::from_micros(1_000);
    let mut held = record(Found::HeldProbed, Prints::Same, 0).unwrap();
    if let State::Held(held) = &mut held.state {
        held.probed_at = Some(probed_at);
    }
    let ask = Ask { fingerprint: held.fingerprint, probe: Probe::Offered, ..super::claim::plain_ask() };
    let answer_after = |pause: Duration| claim(Some(&held), &ask, probed_at.plus(pause)).answer;
    assert_eq!(answer_after(PROBE_PAUSE - Duration::from_micros(1)), Claimed::Held);
    assert_eq!(answer_after(PROBE_PAUSE), Claimed::Probe);
    let write = claim(Some(&held), &ask, probed_at.plus(PROBE_PAUSE)).write.unwrap();
    let State::Held(next) = &write.next.unstamped().state else { panic!("it stays held") };
    assert_eq!(next.probed_at, Some(probed_at.plus(PROBE_PAUSE)));
}

#[test]
fn the_history_keeps_the_last_eight_attempts_with_how_each_ended() {
    let now = Moment::BeforeLeaseEnd;
    let stamp = |write: Option<Write>| Record::clone(&write.unwrap().next.stamp(Version::new(9), now.now()));
    let ask = super::claim::plain_ask();
    let mut run = stamp(claim(None, &ask, now.now()).write);
    for _ in 1..12 {
        let released = stamp(release(Some(&run), OTHERS, "declined", now.now()).write);
        assert_eq!(released.history().last().unwrap().end, AttemptEnd::Released);
        run = stamp(claim(Some(&released), &ask, now.now()).write);
    }
    assert_eq!((run.attempt, run.past_attempts.len()), (12, HISTORY_MAX - 1));
    let done = stamp(complete(Some(&run), OTHERS, &first_outcome(), now.now()).write);
    let numbers: Vec<_> = done.history().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, (5..=12).collect::<Vec<_>>());
    let ends: Vec<_> = done.history().map(|attempt| attempt.end.as_str()).collect();
    assert_eq!(ends[6..], ["released", "completed"]);
}
