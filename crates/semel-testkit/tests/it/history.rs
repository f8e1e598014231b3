//! Hand-made histories, good and bad: the checker tells them apart.

use std::time::Duration;

use semel::clock::Timestamp;
use semel::machine::claim::{Ask, Claimed};
use semel::machine::settle::{Completed, ReleaseAnswer};
use semel::record::{PermitId, StateKind, Version};
use semel::{Key, Outcome};
use semel_testkit::history::{Answer, Asked, Event, Seen, Told, Verdict, check, check_within};
use semel_testkit::sample;

const LEASE_MS: u64 = 10;
const RUN: Told = Told::Claimed(Claimed::Run);
const BUSY: Told = Told::Claimed(Claimed::Busy { retry_after: Duration::ZERO });
const REPLAY: Told = Told::Claimed(Claimed::Replay);
const DONE: Told = Told::Completed(Completed::Done);
const RELEASED: Told = Told::Released(ReleaseAnswer::Released);

/// A claim by the caller whose number is its permit id.
fn claim(caller: usize) -> Asked {
    let key = Key::new("history", "one").unwrap();
    let lease = Duration::from_millis(LEASE_MS);
    Asked::Claim(Box::new(Ask { permit_id: permit(caller), lease, ..sample::ask(&key) }))
}

fn permit(caller: usize) -> PermitId {
    PermitId::new(caller as u128)
}

fn complete(caller: usize, bytes: &[u8]) -> Asked {
    Asked::Complete { permit_id: permit(caller), outcome: Outcome::success(bytes.to_vec()) }
}

fn release(caller: usize) -> Asked {
    Asked::Release { permit_id: permit(caller), reason: "later".into() }
}

/// What a caller asked between two ticks, decided a millisecond after the epoch.
fn event(caller: usize, ticks: (u64, u64), asked: Asked, told: Told) -> Event {
    let answer = Some(Answer { told, seen: Seen::default() });
    let now = Some(Timestamp::from_micros(1_000));
    Event { caller, invoked_at: ticks.0, returned_at: ticks.1, asked, answer, now }
}

fn lost(caller: usize, invoked_at: u64, asked: Asked) -> Event {
    Event { caller, invoked_at, returned_at: 0, asked, answer: None, now: None }
}

fn at_ms(ms: u64, event: Event) -> Event {
    Event { now: Some(Timestamp::from_micros(ms * 1_000)), ..event }
}

fn saw(seen: Seen, event: Event) -> Event {
    Event { answer: event.answer.map(|answer| Answer { seen, ..answer }), ..event }
}

fn explanation(events: &[Event]) -> String {
    match check(events) {
        Verdict::Violation { explanation, .. } => explanation,
        Verdict::Linearizable { order } => panic!("linearizable: {order:?}"),
        Verdict::Undecided { explanation, .. } => panic!("undecided: {explanation}"),
    }
}

#[test]
fn one_after_the_other_is_linearizable() {
    let replayed = Seen { outcome: Some(Outcome::success("paid")), ..Seen::default() };
    let events = [
        event(1, (0, 1), claim(1), RUN),
        event(2, (2, 3), claim(2), BUSY),
        event(1, (4, 5), complete(1, b"paid"), DONE),
        saw(replayed, event(2, (6, 7), claim(2), REPLAY)),
        event(3, (8, 9), Asked::Get, Told::Got(Some(StateKind::Done))),
    ];
    assert_eq!(check(&events), Verdict::Linearizable { order: vec![0, 1, 2, 3, 4] });
    assert_eq!(check(&[]), Verdict::Linearizable { order: vec![] });
}

#[test]
fn answers_at_the_same_time_are_put_in_an_order_that_fits() {
    let events = [
        event(1, (0, 9), claim(1), BUSY),
        event(2, (1, 8), claim(2), RUN),
        event(3, (2, 7), Asked::Get, Told::Got(None)),
    ];
    assert_eq!(check(&events), Verdict::Linearizable { order: vec![2, 1, 0] });
}

#[test]
fn two_runs_at_once_are_a_violation() {
    let events = [event(1, (0, 3), claim(1), RUN), event(2, (1, 2), claim(2), RUN)];
    let why = explanation(&events);
    assert!(why.contains("1 of 2 answers fit") && why.contains("the machine says Claimed(Busy"), "{why}");
}

#[test]
fn a_replay_before_the_complete_was_asked_for_is_a_violation() {
    let ran = event(1, (0, 1), claim(1), RUN);
    let replay = event(2, (2, 4), claim(2), REPLAY);
    let early = [ran.clone(), replay.clone(), event(1, (5, 6), complete(1, b"paid"), DONE)];
    assert!(check(&early).is_violation());
    let meanwhile = [ran, replay, event(1, (3, 6), complete(1, b"paid"), DONE)];
    assert_eq!(check(&meanwhile), Verdict::Linearizable { order: vec![0, 2, 1] });
}

#[test]
fn a_run_after_an_acknowledged_complete_is_a_violation() {
    let events = [
        event(1, (0, 1), claim(1), RUN),
        event(1, (2, 3), complete(1, b"paid"), DONE),
        event(2, (4, 5), claim(2), RUN),
    ];
    assert!(explanation(&events).contains("the machine says Claimed(Replay)"));
}

#[test]
fn a_replay_of_another_outcome_is_a_violation() {
    let replayed = Seen { outcome: Some(Outcome::success("other")), ..Seen::default() };
    let events = [
        event(1, (0, 1), claim(1), RUN),
        event(1, (2, 3), complete(1, b"paid"), DONE),
        saw(replayed, event(2, (4, 5), claim(2), REPLAY)),
    ];
    assert!(explanation(&events).contains("the outcome is"));
}

#[test]
fn busy_after_done_is_a_violation() {
    let events = [
        event(1, (0, 1), claim(1), RUN),
        event(1, (2, 3), complete(1, b"paid"), DONE),
        event(2, (4, 5), claim(2), BUSY),
    ];
    assert!(check(&events).is_violation());
}

#[test]
fn a_lost_reply_may_have_taken_effect() {
    let events = [lost(1, 0, claim(1)), event(2, (1, 2), claim(2), BUSY)];
    assert_eq!(check(&events), Verdict::Linearizable { order: vec![0, 1] });
    let completed = [
        event(1, (0, 1), claim(1), RUN),
        lost(1, 2, complete(1, b"paid")),
        event(2, (3, 4), claim(2), BUSY),
        event(2, (5, 6), claim(2), REPLAY),
    ];
    assert_eq!(check(&completed), Verdict::Linearizable { order: vec![0, 2, 1, 3] });
}

#[test]
fn a_lost_reply_may_have_taken_no_effect() {
    let events = [lost(1, 0, claim(1)), event(2, (1, 2), claim(2), RUN)];
    assert_eq!(check(&events), Verdict::Linearizable { order: vec![1] });
}

#[test]
fn a_lost_reply_never_takes_effect_before_it_is_asked_for() {
    let events = [event(2, (0, 1), claim(2), BUSY), lost(1, 2, claim(1))];
    assert!(check(&events).is_violation());
}

#[test]
fn a_lost_claim_is_found_again_under_its_own_permit() {
    let seen = |fence| Seen { fence: Some(Version::new(fence)), attempt: Some(1), ..Seen::default() };
    let events = [
        lost(1, 0, claim(1)),
        event(2, (1, 2), claim(2), BUSY),
        saw(seen(7), event(1, (3, 4), claim(1), RUN)),
    ];
    assert!(check(&events).is_linearizable());
}

#[test]
fn a_takeover_is_fine_after_the_lease_and_a_violation_within_it() {
    let takeover = |ms| {
        let seen = Seen { attempt: Some(2), ..Seen::default() };
        [event(1, (0, 1), claim(1), RUN), at_ms(ms, saw(seen, event(2, (2, 3), claim(2), RUN)))]
    };
    assert!(check(&takeover(1 + LEASE_MS)).is_linearizable());
    assert!(check(&takeover(LEASE_MS)).is_violation());
}

#[test]
fn two_lost_replies_in_a_row_may_both_have_taken_effect() {
    let Asked::Claim(ask) = claim(1) else { panic!("a claim is asked for") };
    let forgotten_soon = Asked::Claim(Box::new(Ask { retention: Duration::from_millis(1), ..*ask }));
    let found = |ms| {
        [
            at_ms(1_000, event(2, (0, 2), Asked::Get, Told::Got(None))),
            lost(1, 1, forgotten_soon.clone()),
            lost(1, 4, complete(1, b"paid")),
            at_ms(ms, event(3, (6, 7), Asked::Get, Told::Got(Some(StateKind::Done)))),
        ]
    };
    assert!(check(&found(1_010)).is_linearizable());
    // Done before it was claimed is none of these orders.
    let [nothing, claimed, completed, done] = found(1_010);
    assert!(check(&[nothing, completed, done, Event { invoked_at: 8, ..claimed }]).is_violation());
}

#[test]
fn a_lost_claim_lapses_when_others_saw_it_lapse() {
    let lapsed = |busy_ms, run_ms| {
        let seen = Seen { attempt: Some(2), ..Seen::default() };
        [
            lost(1, 0, claim(1)),
            at_ms(busy_ms, event(2, (1, 2), claim(2), BUSY)),
            at_ms(run_ms, saw(seen, event(3, (3, 4), claim(3), RUN))),
        ]
    };
    assert!(check(&lapsed(50, 51)).is_linearizable());
    assert!(check(&lapsed(50, 50)).is_violation());
}

#[test]
fn a_fence_that_does_not_grow_is_a_violation() {
    let fences = |first, second| {
        let seen = |fence| Seen { fence: Some(Version::new(fence)), ..Seen::default() };
        [
            saw(seen(first), event(1, (0, 1), claim(1), RUN)),
            event(1, (2, 3), release(1), RELEASED),
            saw(seen(second), event(2, (4, 5), claim(2), RUN)),
        ]
    };
    assert!(check(&fences(5, 6)).is_linearizable());
    assert!(explanation(&fences(5, 5)).contains("must have grown"));
    assert!(check(&fences(5, 4)).is_violation());
}

#[test]
fn an_answer_from_an_old_version_is_a_violation() {
    let seen = |version| Seen { version: Some(Version::new(version)), ..Seen::default() };
    let events = [
        saw(seen(1), event(1, (0, 1), claim(1), RUN)),
        saw(seen(2), event(1, (2, 3), complete(1, b"paid"), DONE)),
        saw(seen(1), event(2, (4, 5), claim(2), REPLAY)),
    ];
    assert!(explanation(&events).contains("version 1 is what it saw"));
}

#[test]
fn a_search_that_grows_too_large_is_given_up() {
    let events: Vec<_> = (0..8).map(|caller| event(caller, (0, 9), claim(caller), BUSY)).collect();
    let lost_claim = lost(9, 0, claim(9));
    let events = [&events[..], &[lost_claim]].concat();
    assert!(matches!(check_within(&events, 2), Verdict::Undecided { states: 3, .. }));
    assert!(check(&events).is_linearizable());
}
