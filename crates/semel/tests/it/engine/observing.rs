//! What can be seen from outside, and what cannot.

use semel::{Claim, Decision, Outcome};

use crate::world::{LEASE, World, key, outcome, request};

#[tokio::test]
async fn every_decision_is_counted() {
    let world = World::with(|builder| builder.attempts_max(2));
    let claim = |text: &str| Claim::new(&key("1")).fingerprint(request(text));
    let first = crate::world::granted(world.semel.claim(claim("first")).await.unwrap());
    drop(world.semel.claim(claim("first")).await.unwrap());
    drop(world.semel.claim(claim("other")).await.unwrap());
    world.clock.advance(LEASE);
    let second = crate::world::granted(world.semel.claim(claim("first")).await.unwrap());
    first.complete(outcome("old")).await.unwrap_err();
    second.complete(outcome("new")).await.unwrap();
    drop(world.semel.claim(claim("first")).await.unwrap());
    world.run(&key("2")).await.release("gave up").await.unwrap();
    world.run(&key("2")).await.release("gave up").await.unwrap();
    drop(world.semel.claim(Claim::new(&key("2"))).await.unwrap());
    let stats = world.semel.stats();
    assert_eq!((stats.run, stats.replay, stats.busy, stats.mismatch), (4, 1, 1, 1));
    assert_eq!((stats.held, stats.lost, stats.unprotected, stats.swept), (1, 1, 0, 0));
}

#[tokio::test]
async fn a_hold_of_nothing_is_not_counted() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    permit.complete(outcome("paid")).await.unwrap();
    assert_eq!(permit.hold("no answer").await.unwrap(), semel::HoldAnswer::NotHolding);
    assert_eq!(world.semel.stats().held, 0);
}

#[tokio::test]
async fn a_lost_permit_is_counted_once_however_often_it_is_used() {
    let world = World::new();
    let lost = world.run(&key("1")).await;
    world.clock.advance(LEASE);
    world.run(&key("1")).await;
    for _ in 0..3 {
        lost.renew().await.unwrap_err();
        lost.complete(outcome("old")).await.unwrap_err();
    }
    assert_eq!(world.semel.stats().lost, 1);
}

#[tokio::test]
async fn debug_output_shows_lengths_and_digests_never_contents() {
    let world = World::new();
    let secret = semel::Key::scoped(["tenant-secret"], "operation-secret", "name-secret").unwrap();
    let permit = crate::world::granted(world.semel.claim(Claim::new(&secret)).await.unwrap());
    let _: Result<String, semel::OnceError<String>> =
        permit.step("reserve", async || Ok("value-secret".to_owned())).await;
    let running = format!("{permit:?} {:?}", world.semel.get(&secret).await.unwrap());
    let outcome = Outcome::success("bytes-secret").details(&serde_json::json!("details-secret"));
    permit.complete(outcome).await.unwrap();
    let decision = world.semel.claim(Claim::new(&secret)).await.unwrap();
    assert!(matches!(decision, Decision::Replay(_)));
    for shown in [running, format!("{decision:?}"), format!("{:?}", world.semel)] {
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[tokio::test]
async fn a_mismatch_is_no_duplicate_of_the_record() {
    let world = World::new();
    let claim = |text: &str| Claim::new(&key("1")).fingerprint(request(text));
    crate::world::granted(world.semel.claim(claim("first")).await.unwrap());
    assert_eq!(world.semel.claim(claim("other")).await.unwrap().as_str(), "mismatch");
    world.semel.flush().await.unwrap();
    assert_eq!(world.semel.get(&key("1")).await.unwrap().unwrap().duplicates.count, 0);
}
