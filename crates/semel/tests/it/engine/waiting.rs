//! Waiting for the running caller, in this process and in another.

use std::time::Duration;

use semel::{Claim, Decision};
use tokio::time::Instant;

use crate::world::{LEASE, RETENTION, World, granted, key, outcome, replayed};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_gets_the_outcome_the_moment_it_is_there() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    let semel = world.semel.clone();
    let waiting = tokio::spawn(async move { semel.claim_or_wait(Claim::new(&key("1")), PATIENCE).await });
    tokio::task::yield_now().await;
    let before = Instant::now();
    permit.complete(outcome("paid")).await.unwrap();
    assert_eq!(replayed(waiting.await.unwrap().unwrap()), "paid");
    assert_eq!(before.elapsed(), Duration::ZERO, "woken, not by looking again");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_of_another_process_looks_again() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    let another = world.another();
    let waiting = tokio::spawn(async move { another.claim_or_wait(Claim::new(&key("1")), PATIENCE).await });
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = Instant::now();
    permit.complete(outcome("paid")).await.unwrap();
    assert_eq!(replayed(waiting.await.unwrap().unwrap()), "paid");
    assert!(before.elapsed() <= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_runs_when_the_other_gives_up() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    let semel = world.semel.clone();
    let waiting = tokio::spawn(async move { semel.claim_or_wait(Claim::new(&key("1")), PATIENCE).await });
    tokio::time::sleep(Duration::from_secs(3)).await;
    permit.release("gave up").await.unwrap();
    assert_eq!(granted(waiting.await.unwrap().unwrap()).attempt(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_runs_when_the_record_is_gone() {
    let world = World::new();
    let _permit = world.run(&key("1")).await;
    let semel = world.semel.clone();
    let waiting = tokio::spawn(async move { semel.claim_or_wait(Claim::new(&key("1")), PATIENCE).await });
    tokio::time::sleep(Duration::from_secs(3)).await;
    // Lapsed and past its keep between two reads.
    world.clock.advance(LEASE + RETENTION);
    let before = Instant::now();
    assert_eq!(granted(waiting.await.unwrap().unwrap()).attempt(), 1);
    assert!(before.elapsed() <= Duration::from_secs(1), "seen at the next read");
}

#[tokio::test(start_paused = true)]
async fn patience_ends_at_its_deadline() {
    let world = World::new();
    let _permit = world.run(&key("1")).await;
    let before = Instant::now();
    let decision = world.semel.claim_or_wait(Claim::new(&key("1")), PATIENCE).await.unwrap();
    assert!(matches!(decision, Decision::Busy(_)));
    assert_eq!(before.elapsed(), PATIENCE);
    world.semel.flush().await.unwrap();
    let record = world.semel.get(&key("1")).await.unwrap().unwrap();
    assert_eq!(record.duplicates.count, 1, "one waiting caller is one duplicate");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hears_of_other_processes_can_wake_whoever_waits() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    let another = world.another();
    let waiter = another.clone();
    let waiting = tokio::spawn(async move { waiter.claim_or_wait(Claim::new(&key("1")), PATIENCE).await });
    tokio::time::sleep(Duration::from_secs(3)).await;
    permit.complete(outcome("paid")).await.unwrap();
    let before = Instant::now();
    another.wake(&key("1").id());
    assert_eq!(replayed(waiting.await.unwrap().unwrap()), "paid");
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn every_way_to_settle_a_run_wakes_every_caller_that_waits_for_it() {
    for settle in ["complete", "release", "hold", "complete_all", "release_all", "release_shown"] {
        let world = World::new();
        let permit = world.run(&key("1")).await;
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let semel = world.semel.clone();
                tokio::spawn(async move {
                    let decision = semel.claim_or_wait(Claim::new(&key("1")), PATIENCE).await.unwrap();
                    (decision.as_str(), Instant::now())
                })
            })
            .collect();
        // Past every early read: the next one is a second away.
        tokio::time::sleep(Duration::from_millis(5_001)).await;
        let permits = std::slice::from_ref(&permit);
        let shown = world.semel.get(&key("1")).await.unwrap().unwrap();
        match settle {
            "complete" => permit.complete(outcome("paid")).await.unwrap(),
            "release" => drop(permit.release("gave up").await.unwrap()),
            "hold" => drop(permit.hold("no answer").await.unwrap()),
            "complete_all" => world.semel.complete_all(permits, outcome("paid")).await.unwrap(),
            "release_all" => drop(world.semel.release_all(permits, "gave up").await.unwrap()),
            _ => drop(world.semel.release_shown(&shown, "take it", None).await.unwrap()),
        }
        let settled_at = Instant::now();
        let mut told = Vec::new();
        // After a release one of them runs, and the others go on waiting for that one.
        let first_of_all = if settle.contains("release") { 1 } else { 3 };
        for waiting in waiting {
            told.push(waiting.await.unwrap());
        }
        let at_once = told.iter().filter(|(_, at)| at.duration_since(settled_at) < Duration::from_millis(5));
        assert_eq!(at_once.count(), first_of_all, "{settle}: {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_is_recorded_under_the_same_permit_wakes_who_waits() {
    let world = World::new();
    let waiting = world.semel.clone();
    let permit = world.run(&key("1")).await;
    let waiting = tokio::spawn(async move { waiting.claim_or_wait(Claim::new(&key("1")), PATIENCE).await });
    tokio::time::sleep(Duration::from_millis(5_001)).await;
    let before = Instant::now();
    let own = Claim::new(&key("1")).permit_id(permit.id());
    drop(world.semel.record_once(own, outcome("paid")).await.unwrap());
    let told = waiting.await.unwrap().unwrap();
    assert_eq!((told.as_str(), before.elapsed()), ("replay", Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn patience_does_not_start_anew_when_a_caller_is_woken_in_vain() {
    let world = World::new();
    let _permit = world.run(&key("1")).await;
    let (semel, started_at) = (world.semel.clone(), tokio::time::Instant::now());
    let patience = Duration::from_secs(10);
    let waiting = tokio::spawn(async move {
        let decision = semel.claim_or_wait(Claim::new(&key("1")), patience).await.unwrap();
        (decision.as_str(), started_at.elapsed())
    });
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(4)).await;
        world.semel.wake(&key("1").id());
    }
    assert_eq!(waiting.await.unwrap(), ("busy", patience));
}
