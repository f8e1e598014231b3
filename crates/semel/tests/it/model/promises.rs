//! What holds in every order of events, and the faults that break it.

use std::collections::HashSet;

use semel::Lapse;

use super::moves::{Bounds, Fault, Sight, World};
use super::search::search;
use super::state::Answer;

/// Three callers that nothing goes wrong for but time.
const CROWD: Bounds = Bounds { callers: 3, ticks: 2, mishaps: 0 };
/// Two callers, one mishap of any kind, and time enough for any record to be swept.
const MISHAP: Bounds = Bounds { callers: 2, ticks: 3, mishaps: 1 };
/// Both at once.
const WIDE: Bounds = Bounds { callers: 3, ticks: 2, mishaps: 1 };

/// The number of states is pinned: a search that quietly shrinks shows less than it says.
fn explore(lapse: Lapse, bounds: Bounds, states: usize) -> HashSet<Sight> {
    let mut world = World::new(lapse, Fault::None, bounds);
    let searched = search(&mut world).unwrap_or_else(|story| panic!("{story:#?}"));
    println!(
        "model: {} states, {} transitions, depth {}",
        searched.states, searched.transitions, searched.depth
    );
    assert_eq!(searched.states, states);
    world.sights
}

fn broken_by(fault: Fault, bounds: Bounds) -> &'static str {
    let story = search(&mut World::new(Lapse::Rerun, fault, bounds)).expect_err("the fault shows nowhere");
    println!("model: {fault:?}: {}, after {:?}", story.broken, story.moves);
    story.broken
}

fn assert_seen(seen: &HashSet<Sight>, sights: &[Sight]) {
    for sight in sights {
        assert!(seen.contains(sight), "{sight:?} was never come across");
    }
}

#[test]
fn three_callers_keep_every_promise_under_rerun() {
    let seen = explore(Lapse::Rerun, CROWD, 156_074);
    let told = [Answer::Run, Answer::Replay, Answer::Busy, Answer::Done, Answer::Released, Answer::Lost];
    assert_seen(&seen, &told.map(Sight::Told));
    assert_seen(&seen, &[Sight::Told(Answer::Renewed), Sight::TakenOver, Sight::GrantHeardTooLate]);
    assert_seen(&seen, &[Sight::WriteFencedOff, Sight::PlainWriteOverAcknowledged, Sight::SweptAndRunAgain]);
}

#[test]
fn three_callers_keep_every_promise_under_hold() {
    let seen = explore(Lapse::Hold, CROWD, 190_681);
    let told = [Answer::Run, Answer::Replay, Answer::Busy, Answer::Done, Answer::Held, Answer::Lost];
    assert_seen(&seen, &told.map(Sight::Told));
    assert_seen(&seen, &[Sight::Told(Answer::Renewed), Sight::RunAfterResolve]);
    assert!(!seen.contains(&Sight::TakenOver));
}

#[test]
fn a_mishap_breaks_no_promise_under_rerun() {
    let seen = explore(Lapse::Rerun, MISHAP, 562_490);
    assert_seen(&seen, &[Sight::AstrayTook, Sight::AstrayStale, Sight::TakenOver, Sight::SweptAndRunAgain]);
}

#[test]
fn a_mishap_breaks_no_promise_under_hold() {
    let seen = explore(Lapse::Hold, MISHAP, 797_266);
    assert_seen(&seen, &[Sight::AstrayTook, Sight::AstrayStale, Sight::RunAfterResolve]);
    assert!(!seen.contains(&Sight::TakenOver));
}

#[test]
#[ignore = "searches six million states; `cargo xtask test --all` runs it"]
fn three_callers_and_a_mishap_break_no_promise() {
    explore(Lapse::Rerun, WIDE, 6_711_729);
}

#[test]
fn a_store_that_swaps_blindly_is_found_out() {
    assert_eq!(broken_by(Fault::SwapsBlindly, CROWD), "a run was granted over a good lease");
}

#[test]
fn a_complete_that_takes_any_run_for_its_own_is_found_out() {
    assert_eq!(broken_by(Fault::CompletesAnyRun, CROWD), "a stale permit changed the record");
}

#[test]
fn a_lease_judged_on_a_callers_own_clock_is_found_out() {
    assert_eq!(broken_by(Fault::SkewedClock, CROWD), "a run was granted over a good lease");
}

#[test]
fn versions_that_start_anew_after_a_sweep_are_found_out() {
    assert_eq!(broken_by(Fault::ReusesVersions, CROWD), "a fence did not grow");
}

/// The one thing that is asked of the network: no request outlives the retention of the record it is
/// about. A claim that does makes its record anew, and a caller that knows its permit by its id alone, as the callers
/// of this model do, takes that for its own run. The engine's permits also know their fence, and do not.
#[test]
fn a_request_that_outlives_the_record_is_found_out() {
    let broken = broken_by(Fault::DeliversTheForgotten, MISHAP);
    assert_eq!(broken, "the fence-checking resource took another write than that of the acknowledged run");
}
