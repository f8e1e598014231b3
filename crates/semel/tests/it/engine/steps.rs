//! Steps: a second attempt goes on after what the first one finished.

use std::sync::atomic::{AtomicU32, Ordering};

use semel::{Claim, ErrorKind, OnceError, Permit};

use crate::world::{LEASE, RETENTION, World, granted, key, outcome, request};

async fn reserve(permit: &Permit, calls: &AtomicU32) -> Result<u32, OnceError<String>> {
    permit.step("reserve", async || Ok(calls.fetch_add(1, Ordering::SeqCst) + 1)).await
}

#[tokio::test]
async fn a_finished_step_is_not_repeated_by_the_next_attempt() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    let first = world.run(&key("1")).await;
    assert_eq!(reserve(&first, &calls).await.unwrap(), 1);
    world.clock.advance(LEASE);
    let second = world.run(&key("1")).await;
    assert_eq!(reserve(&second, &calls).await.unwrap(), 1);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    second.complete(outcome("paid")).await.unwrap();
    assert!(world.semel.get(&key("1")).await.unwrap().unwrap().steps().is_empty());
}

#[tokio::test]
async fn a_finished_step_survives_a_release_unless_another_request_takes_the_key() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    let claim = |text: &str| Claim::new(&key("1")).fingerprint(request(text));
    let first = granted(world.semel.claim(claim("first")).await.unwrap());
    reserve(&first, &calls).await.unwrap();
    first.release("the next step failed").await.unwrap();
    let second = granted(world.semel.claim(claim("first")).await.unwrap());
    assert_eq!(reserve(&second, &calls).await.unwrap(), 1);
    second.release("and again").await.unwrap();
    let other = granted(world.semel.claim(claim("other")).await.unwrap());
    assert_eq!(reserve(&other, &calls).await.unwrap(), 2);
}

#[tokio::test]
async fn a_step_of_a_lost_permit_is_not_stored() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    let zombie = world.run(&key("1")).await;
    world.clock.advance(LEASE);
    let next = world.run(&key("1")).await;
    let error = reserve(&zombie, &calls).await.unwrap_err();
    assert!(matches!(error, OnceError::Engine(error) if error.kind() == ErrorKind::Lost));
    assert_eq!(reserve(&next, &calls).await.unwrap(), 2);
}

#[tokio::test]
async fn a_step_that_fails_is_tried_again() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    let permit = world.run(&key("1")).await;
    let failed: Result<u32, _> = permit.step("reserve", async || Err("out of stock".to_owned())).await;
    assert!(matches!(failed, Err(OnceError::Work(_))));
    assert_eq!(reserve(&permit, &calls).await.unwrap(), 1);
}

#[tokio::test]
async fn a_step_does_not_stretch_the_lease() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    let permit = world.run(&key("1")).await;
    world.clock.advance(LEASE / 2);
    reserve(&permit, &calls).await.unwrap();
    world.clock.advance(LEASE / 2);
    assert_eq!(world.run(&key("1")).await.attempt(), 2);
}

#[tokio::test]
async fn a_step_without_a_name_is_refused_and_its_work_is_not_begun() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    assert_eq!(permit.put_step("", *b"value").await.unwrap_err().kind(), ErrorKind::Invalid);
    let calls = AtomicU32::new(0);
    let begun = permit.step("", async || {
        calls.fetch_add(1, Ordering::SeqCst);
        Ok::<_, String>(7)
    });
    assert!(matches!(begun.await, Err(OnceError::Engine(error)) if error.kind() == ErrorKind::Invalid));
    assert_eq!((calls.load(Ordering::SeqCst), permit.steps().len()), (0, 0));
}

#[tokio::test]
async fn each_of_several_steps_keeps_its_own_value() {
    let world = World::new();
    for attempt in 1..=2 {
        let permit = world.run(&key("1")).await;
        for (name, value) in [("reserve", 7), ("charge again", 8), ("charge", 9), ("ship", 10)] {
            let ran: Result<u32, OnceError<String>> = permit
                .step(name, async || if attempt == 1 { Ok(value) } else { Err("again".to_owned()) })
                .await;
            assert_eq!(ran.unwrap(), value, "{name}, attempt {attempt}");
        }
        permit.release("later").await.unwrap();
    }
}

#[tokio::test]
async fn a_run_that_a_store_knows_of_can_be_completed_inside_a_transaction() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    assert!(permit.complete_loop(outcome("paid")).is_some());
    let why = semel::Error::new(ErrorKind::Unavailable, "away");
    let unprotected = world.semel.unprotected(&Claim::new(&key("2")), &why);
    assert!(unprotected.complete_loop(outcome("paid")).is_none());
}

#[tokio::test]
async fn a_step_keeps_its_record_no_longer_than_the_run_did() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    permit.put_step("reserve", *b"1").await.unwrap();
    world.clock.advance(LEASE + RETENTION);
    assert_eq!(world.semel.sweep(10).await.unwrap().removed, 1);
}
