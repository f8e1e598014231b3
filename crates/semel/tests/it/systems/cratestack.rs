//! cratestack: idempotent HTTP over a database; here, what needs neither.

use std::sync::Arc;
use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Claim, Decision, ErrorKind, Key, ReleaseAnswer, Semel};
use semel_testkit::{Call, Fault, FaultyStore};

use crate::world::{LEASE, RETENTION, World, granted, key, outcome, replayed, request};

#[tokio::test]
async fn cratestack_one_swap_claims_or_takes_over_or_hands_back_the_live_record() {
    let world = World::new();
    let first = world.run(&key("1")).await;
    assert!(matches!(world.semel.claim(Claim::new(&key("1"))).await.unwrap(), Decision::Busy(_)));
    world.clock.advance(LEASE);
    let second = world.run(&key("1")).await;
    assert_eq!((first.attempt(), second.attempt()), (1, 2));
}

#[tokio::test]
async fn cratestack_run_with_a_permit_replay_busy_and_mismatch() {
    let world = World::new();
    let claim = |text: &str| Claim::new(&key("1")).fingerprint(request(text));
    let permit = granted(world.semel.claim(claim("body")).await.unwrap());
    assert_eq!(world.semel.claim(claim("body")).await.unwrap().as_str(), "busy");
    assert_eq!(world.semel.claim(claim("other body")).await.unwrap().as_str(), "mismatch");
    permit.complete(outcome("201")).await.unwrap();
    assert_eq!(replayed(world.semel.claim(claim("body")).await.unwrap()), "201");
}

#[tokio::test]
async fn cratestack_a_handler_that_overran_changes_nothing_and_is_told() {
    let world = World::new();
    let overran = world.run(&key("1")).await;
    world.clock.advance(LEASE);
    world.run(&key("1")).await.complete(outcome("201")).await.unwrap();
    assert_eq!(overran.complete(outcome("500")).await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(overran.release("500").await.unwrap(), ReleaseAnswer::NotHolding);
    assert_eq!(replayed(world.semel.claim(Claim::new(&key("1"))).await.unwrap()), "201");
}

#[tokio::test]
async fn cratestack_the_principal_is_in_the_scope() {
    let world = World::new();
    let of = |principal: &str| Key::scoped([principal], "POST /charges", "key-1").unwrap();
    world.run(&of("alice")).await.complete(outcome("alice's")).await.unwrap();
    world.run(&of("bob")).await.complete(outcome("bob's")).await.unwrap();
    assert_eq!(replayed(world.semel.claim(Claim::new(&of("alice"))).await.unwrap()), "alice's");
}

#[tokio::test]
async fn cratestack_a_crash_blocks_the_key_for_its_lease_and_not_for_its_retention() {
    let world = World::new();
    drop(world.run(&key("1")).await);
    world.clock.advance(LEASE);
    assert!(LEASE * 100 < RETENTION);
    assert_eq!(world.run(&key("1")).await.attempt(), 2);
}

#[tokio::test(start_paused = true)]
async fn cratestack_a_duplicate_costs_one_round_trip() {
    let calls = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (store, seen) = (Arc::new(MemoryStore::new()), Arc::clone(&calls));
    let direct = Semel::builder_shared(store.clone()).build().unwrap();
    granted(direct.claim(Claim::new(&key("1"))).await.unwrap()).complete(outcome("201")).await.unwrap();
    let semel = Semel::new(FaultyStore::new(store, move |call| {
        seen.lock().unwrap().push(call);
        Fault::Delay(Duration::from_millis(1))
    }));
    assert_eq!(replayed(semel.claim(Claim::new(&key("1"))).await.unwrap()), "201");
    assert_eq!(*calls.lock().unwrap(), [Call::Swap]);
}
