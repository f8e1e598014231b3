//! What a lapsed lease means: rerun, hold, or a look whether the effect landed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use semel::{Claim, Decision, ErrorKind, Lapse, Probed};

use crate::world::{LEASE, RETENTION, World, granted, key, outcome, replayed};

#[tokio::test]
async fn under_rerun_the_next_claim_runs_and_the_old_permit_changes_nothing() {
    let world = World::new();
    let zombie = world.run(&key("1")).await;
    world.clock.advance(LEASE);
    let next = world.run(&key("1")).await;
    assert_eq!(next.attempt(), 2);
    assert!(next.fence() > zombie.fence());
    assert_eq!(zombie.complete(outcome("old")).await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(zombie.is_lost());
    assert_eq!(zombie.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    next.complete(outcome("new")).await.unwrap();
    assert_eq!(replayed(world.semel.claim(Claim::new(&key("1"))).await.unwrap()), "new");
}

#[tokio::test]
async fn a_late_complete_is_taken_as_long_as_nobody_took_over() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    world.clock.advance(LEASE * 10);
    permit.complete(outcome("late")).await.unwrap();
    assert_eq!(replayed(world.semel.claim(Claim::new(&key("1"))).await.unwrap()), "late");
}

#[tokio::test]
async fn under_hold_nobody_runs_again_whatever_the_claim_says() {
    let world = World::with(|builder| builder.lapse(Lapse::Hold));
    let zombie = world.run(&key("1")).await;
    world.clock.advance(LEASE);
    // The record's policy counts, not the claim's: every process must agree.
    let rerun = Claim::new(&key("1")).lapse(Lapse::Rerun);
    let Decision::Held(held) = world.another().claim(rerun).await.unwrap() else { panic!() };
    assert_eq!(held.reason(), "lapsed");
    assert_eq!(zombie.complete(outcome("late")).await.unwrap_err().kind(), ErrorKind::Lost);
    world.clock.advance(RETENTION * 100);
    assert!(matches!(world.semel.claim(Claim::new(&key("1"))).await.unwrap(), Decision::Held(_)));
}

#[tokio::test]
async fn a_probe_decides_what_a_lapse_means() {
    let verdicts = [
        (Probed::Landed(outcome("found")), "replay"),
        (Probed::NotLanded, "run"),
        (Probed::CannotTell, "held"),
    ];
    for (verdict, word) in verdicts {
        let world = World::new();
        let looks = Arc::new(AtomicU32::new(0));
        let claim = || {
            let (looks, verdict) = (Arc::clone(&looks), verdict.clone());
            Claim::new(&key("1")).probe(move |record| {
                looks.fetch_add(1, Ordering::SeqCst);
                assert_eq!(record.key, key("1"));
                std::future::ready(verdict.clone())
            })
        };
        granted(world.semel.claim(claim()).await.unwrap());
        assert_eq!(world.semel.claim(claim()).await.unwrap().as_str(), "busy");
        assert_eq!(looks.load(Ordering::SeqCst), 0);
        world.clock.advance(LEASE);
        assert_eq!(world.semel.claim(claim()).await.unwrap().as_str(), word);
        assert_eq!(looks.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn without_the_probe_the_record_is_held() {
    let world = World::new();
    let probing = Claim::new(&key("1")).probe(|_| std::future::ready(Probed::NotLanded));
    granted(world.semel.claim(probing).await.unwrap());
    world.clock.advance(LEASE);
    assert!(matches!(world.semel.claim(Claim::new(&key("1"))).await.unwrap(), Decision::Held(_)));
}

#[tokio::test]
async fn attempts_are_bounded_over_lapses_and_releases() {
    let world = World::with(|builder| builder.attempts_max(3));
    for attempt in 1..=3 {
        let permit = world.run(&key("1")).await;
        assert_eq!(permit.attempt(), attempt);
        if attempt == 2 {
            permit.release("gave up").await.unwrap();
        } else {
            world.clock.advance(LEASE);
        }
    }
    let Decision::Held(held) = world.semel.claim(Claim::new(&key("1"))).await.unwrap() else { panic!() };
    assert_eq!(held.reason(), "attempts");
}

#[tokio::test]
async fn a_record_that_nobody_came_back_for_is_forgotten() {
    let world = World::new();
    let zombie = world.run(&key("1")).await;
    world.clock.advance(LEASE + RETENTION);
    assert!(world.semel.get(&key("1")).await.unwrap().is_none());
    assert_eq!(world.semel.sweep(10).await.unwrap().removed, 1);
    let next = world.run(&key("1")).await;
    assert_eq!(next.attempt(), 1);
    assert!(next.fence() > zombie.fence(), "a fence grows also after its record was swept");
    assert_eq!(zombie.complete(outcome("old")).await.unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test]
async fn a_claim_may_differ_from_its_engine_in_how_many_attempts_there_are() {
    let world = World::with(|builder| builder.attempts_max(5));
    let once = || Claim::new(&key("1")).attempts_max(1);
    let permit = crate::world::granted(world.semel.claim(once()).await.unwrap());
    permit.release("gave up").await.unwrap();
    assert_eq!(world.semel.claim(once()).await.unwrap().as_str(), "held");
}
