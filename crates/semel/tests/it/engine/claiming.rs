//! Claim, complete, release, resume, resolve and get, as one caller after another sees them.

use semel::record::State;
use semel::{Claim, Decision, ErrorKind, RecordedOnce, ReleaseAnswer, Resolution, Resolved};

use crate::world::{LEASE, RETENTION, World, granted, key, outcome, replayed, request};

#[tokio::test]
async fn the_first_caller_runs_and_everyone_after_it_replays() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    assert_eq!(permit.attempt(), 1);
    permit.complete(outcome("paid")).await.unwrap();
    for _ in 0..3 {
        assert_eq!(replayed(world.another().claim(Claim::new(&key("1"))).await.unwrap()), "paid");
    }
}

#[tokio::test]
async fn while_one_runs_the_others_are_told_who_since_when_and_for_how_long() {
    let world = World::with(|builder| builder.owner("worker-7"));
    let _permit = world.run(&key("1")).await;
    world.clock.advance(LEASE / 4);
    let Decision::Busy(busy) = world.another().claim(Claim::new(&key("1"))).await.unwrap() else { panic!() };
    assert_eq!(busy.owner(), "worker-7");
    assert_eq!(busy.since(), busy.record().first_seen_at);
    assert_eq!(busy.retry_after(), LEASE * 3 / 4);
}

#[tokio::test]
async fn a_mismatch_never_disturbs_the_record() {
    let world = World::new();
    let claim = |text: &str| Claim::new(&key("1")).fingerprint(request(text));
    let permit = granted(world.semel.claim(claim("first")).await.unwrap());
    let while_running = world.semel.claim(claim("other")).await.unwrap();
    assert!(matches!(while_running, Decision::Mismatch(mismatch) if mismatch.record().mismatches.count == 1));
    permit.complete(outcome("paid")).await.unwrap();
    assert!(matches!(world.semel.claim(claim("other")).await.unwrap(), Decision::Mismatch(_)));
    assert_eq!(replayed(world.semel.claim(claim("first")).await.unwrap()), "paid");
}

#[tokio::test]
async fn ten_thousand_wrong_fingerprints_leave_a_bounded_record_that_its_owner_completes() {
    let world = World::new();
    let claim = |text: &str| Claim::new(&key("1")).fingerprint(request(text));
    let permit = granted(world.semel.claim(claim("first")).await.unwrap());
    for wrong in 0..10_000 {
        let decision = world.semel.claim(claim(&format!("wrong {wrong}"))).await.unwrap();
        assert!(matches!(decision, Decision::Mismatch(_)));
    }
    permit.complete(outcome("paid")).await.unwrap();
    assert_eq!(replayed(world.semel.claim(claim("first")).await.unwrap()), "paid");
    let record = world.semel.get(&key("1")).await.unwrap().unwrap();
    assert_eq!(record.mismatches.count, 10_000);
    assert_eq!(record.mismatches.fingerprints.len(), 8);
    assert!(semel::codec::encode(&record).unwrap().len() < 1_024);
}

#[tokio::test]
async fn completing_twice_is_harmless_and_completing_otherwise_is_lost() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    permit.complete(outcome("paid")).await.unwrap();
    permit.complete(outcome("paid")).await.unwrap();
    let other = permit.complete(outcome("refused")).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Lost);
    assert_eq!(replayed(world.semel.claim(Claim::new(&key("1"))).await.unwrap()), "paid");
}

#[tokio::test]
async fn a_release_lets_the_next_one_run_and_never_touches_what_is_done() {
    let world = World::new();
    let first = world.run(&key("1")).await;
    assert_eq!(first.release("gave up").await.unwrap(), ReleaseAnswer::Released);
    let second = world.run(&key("1")).await;
    assert_eq!(second.attempt(), 2);
    assert!(second.fence() > first.fence());
    assert_eq!(first.release("again").await.unwrap(), ReleaseAnswer::NotHolding);
    second.complete(outcome("paid")).await.unwrap();
    assert_eq!(second.release("too late").await.unwrap(), ReleaseAnswer::NotHolding);
    assert_eq!(replayed(world.semel.claim(Claim::new(&key("1"))).await.unwrap()), "paid");
}

#[tokio::test]
async fn after_a_release_another_request_may_take_the_key() {
    let world = World::new();
    let claim = |text: &str| Claim::new(&key("1")).fingerprint(request(text));
    granted(world.semel.claim(claim("first")).await.unwrap()).release("gave up").await.unwrap();
    let permit = granted(world.semel.claim(claim("other")).await.unwrap());
    permit.complete(outcome("paid")).await.unwrap();
    assert!(matches!(world.semel.claim(claim("first")).await.unwrap(), Decision::Mismatch(_)));
}

#[tokio::test]
async fn a_permit_is_resumed_by_whoever_knows_its_id_and_by_nobody_else() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    world.clock.advance(LEASE / 2);
    let resumed = granted(world.another().resume(&key("1"), permit.id()).await.unwrap());
    assert_eq!((resumed.attempt(), resumed.fence()), (permit.attempt(), permit.fence()));
    // The lease was renewed by it.
    world.clock.advance(LEASE * 3 / 4);
    assert!(matches!(world.another().claim(Claim::new(&key("1"))).await.unwrap(), Decision::Busy(_)));
    resumed.complete(outcome("paid")).await.unwrap();
}

#[tokio::test]
async fn an_owner_that_says_reentrant_takes_over_from_itself() {
    let world = World::new();
    let claim = || Claim::new(&key("1")).owner("node-1").reentrant();
    let before = granted(world.semel.claim(claim()).await.unwrap());
    let after = granted(world.semel.claim(claim()).await.unwrap());
    assert_eq!(after.attempt(), 2);
    assert!(after.fence() > before.fence());
    assert_eq!(before.complete(outcome("old")).await.unwrap_err().kind(), ErrorKind::Lost);
    let stranger = Claim::new(&key("1")).owner("node-2").reentrant();
    assert!(matches!(world.semel.claim(stranger).await.unwrap(), Decision::Busy(_)));
    after.complete(outcome("new")).await.unwrap();
}

#[tokio::test]
async fn an_outcome_is_recorded_once_and_a_second_one_gets_the_first() {
    let world = World::new();
    let first = world.semel.record_once(Claim::new(&key("1")), outcome("event-1")).await.unwrap();
    assert!(matches!(first, RecordedOnce::Recorded(record) if record.attempt == 1));
    let second = world.another().record_once(Claim::new(&key("1")), outcome("event-2")).await.unwrap();
    let RecordedOnce::Replay(replay) = second else { panic!() };
    assert_eq!(&**replay.outcome().bytes(), b"event-1");
    let permit = world.run(&key("2")).await;
    let busy = world.semel.record_once(Claim::new(&key("2")), outcome("event-3")).await.unwrap();
    assert!(matches!(busy, RecordedOnce::Busy(_)));
    drop(permit);
}

#[tokio::test]
async fn what_is_held_is_settled_by_hand_and_only_what_is_held() {
    let world = World::with(|builder| builder.attempts_max(1));
    let name = key("1");
    let release = || Resolution::Release { reason: "checked by hand".into() };
    assert_eq!(world.semel.resolve(&name, release()).await.unwrap(), Resolved::NotHeld);
    world.run(&name).await.release("gave up").await.unwrap();
    let Decision::Held(held) = world.semel.claim(Claim::new(&name)).await.unwrap() else { panic!() };
    assert_eq!(held.reason(), "attempts");
    assert_eq!(world.semel.resolve(&name, release()).await.unwrap(), Resolved::Resolved);
    // Whoever releases it wants it to run, whatever the attempts say.
    world.run(&name).await.release("gave up again").await.unwrap();
    assert!(matches!(world.semel.claim(Claim::new(&name)).await.unwrap(), Decision::Held(_)));
    let done = Resolution::Done(outcome("found at the provider"));
    assert_eq!(world.semel.resolve(&name, done).await.unwrap(), Resolved::Resolved);
    assert_eq!(replayed(world.semel.claim(Claim::new(&name)).await.unwrap()), "found at the provider");
}

#[tokio::test]
async fn a_look_changes_nothing_and_shows_nothing_past_its_time() {
    let world = World::new();
    assert!(world.semel.get(&key("1")).await.unwrap().is_none());
    world.run(&key("1")).await.complete(outcome("paid")).await.unwrap();
    let first = world.semel.get(&key("1")).await.unwrap().unwrap();
    world.clock.advance(RETENTION / 2);
    let again = world.semel.get(&key("1")).await.unwrap().unwrap();
    assert_eq!(first, again);
    assert!(matches!(again.state, State::Done(_)));
    world.clock.advance(RETENTION / 2);
    assert!(world.semel.get(&key("1")).await.unwrap().is_none());
}

#[tokio::test]
async fn retention_starts_at_completion_and_does_not_slide() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    world.clock.advance(LEASE / 2);
    permit.complete(outcome("paid")).await.unwrap();
    world.clock.advance(RETENTION - std::time::Duration::from_micros(1));
    assert_eq!(replayed(world.semel.claim(Claim::new(&key("1"))).await.unwrap()), "paid");
    world.semel.flush().await.unwrap();
    world.clock.advance(std::time::Duration::from_micros(1));
    let next = world.run(&key("1")).await;
    assert_eq!(next.attempt(), 1);
    assert!(next.fence() > permit.fence());
}

#[tokio::test]
async fn a_policy_that_could_never_work_is_refused_by_name() {
    let world = World::new();
    let claim = Claim::new(&key("1")).lease(std::time::Duration::ZERO);
    let error = world.semel.claim(claim).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().starts_with("lease"), "{error}");
}

#[tokio::test]
async fn no_two_runs_of_whatever_keys_share_a_fence() {
    let world = World::new();
    let mut fences = std::collections::HashSet::new();
    for name in 0..500 {
        assert!(fences.insert(world.run(&key(&name.to_string())).await.fence()), "{name}");
    }
}

#[tokio::test]
async fn a_permit_knows_until_when_its_outcome_is_remembered() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    assert_eq!(permit.remembered_until(), None, "before it is done");
    permit.complete(outcome("paid")).await.unwrap();
    let Decision::Replay(replay) = world.semel.claim(Claim::new(&key("1"))).await.unwrap() else { panic!() };
    assert!(replay.remembered_until().is_some());
    assert_eq!(permit.remembered_until(), replay.remembered_until());
}
