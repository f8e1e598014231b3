//! Bloccs: an in-memory tracker for the nodes of a pipeline.

use std::sync::Arc;
use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Claim, Decision, ErrorKind, Key, OnOutage, ReleaseAnswer, Semel};
use semel_testkit::{Fault, FaultyStore};

use crate::world::{LEASE, World, granted, key, outcome, replayed};

#[tokio::test]
async fn bloccs_of_two_simultaneous_first_deliveries_exactly_one_runs() {
    let world = World::new();
    let (here, there) = (world.semel.clone(), world.another());
    let (a, b) = tokio::join!(here.claim(Claim::new(&key("1"))), there.claim(Claim::new(&key("1"))));
    let mut words = [a.unwrap().as_str(), b.unwrap().as_str()];
    words.sort_unstable();
    assert_eq!(words, ["busy", "run"]);
}

#[tokio::test]
async fn bloccs_completion_keeps_the_key_and_restarts_its_time_and_failure_frees_it() {
    let world = World::new();
    let hour = Duration::from_hours(1);
    let claim = || Claim::new(&key("1")).retention(hour);
    let permit = granted(world.semel.claim(claim()).await.unwrap());
    world.clock.advance(LEASE / 2);
    permit.complete(outcome("done")).await.unwrap();
    world.clock.advance(hour - Duration::from_secs(1));
    assert_eq!(replayed(world.semel.claim(claim()).await.unwrap()), "done");

    world.run(&key("2")).await.release("terminal failure").await.unwrap();
    assert_eq!(world.run(&key("2")).await.attempt(), 2);
}

#[tokio::test]
async fn bloccs_a_retry_goes_on_under_the_reservation_that_it_proves_to_own() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    let resumed = granted(world.semel.resume(&key("1"), permit.id()).await.unwrap());
    assert_eq!((resumed.attempt(), resumed.fence()), (1, permit.fence()));
    // Saying so is not enough.
    assert!(matches!(world.semel.claim(Claim::new(&key("1"))).await.unwrap(), Decision::Busy(_)));
}

#[tokio::test]
async fn bloccs_keys_are_scoped_by_network_and_node() {
    let world = World::new();
    let message = |network: &str, node: &str| Key::scoped([network, node], "message", "42").unwrap();
    world.run(&message("net-1", "node-1")).await;
    world.run(&message("net-1", "node-2")).await;
    world.run(&message("net-2", "node-1")).await;
    let again = world.semel.claim(Claim::new(&message("net-1", "node-1"))).await.unwrap();
    assert!(matches!(again, Decision::Busy(_)));
}

#[tokio::test]
async fn bloccs_what_a_crashed_process_left_is_free_after_its_lease_and_swept_after_its_time() {
    let world = World::new();
    let hour = Duration::from_hours(1);
    granted(world.semel.claim(Claim::new(&key("1")).retention(hour)).await.unwrap());
    granted(world.semel.claim(Claim::new(&key("2")).retention(hour)).await.unwrap());
    world.clock.advance(LEASE);
    assert_eq!(world.run(&key("1")).await.attempt(), 2);
    world.clock.advance(hour);
    assert_eq!(world.semel.sweep(10).await.unwrap().removed, 1);
}

#[tokio::test]
async fn bloccs_runs_without_its_store_only_if_told_to_and_says_so() {
    let away = || FaultyStore::new(Arc::new(MemoryStore::new()), |_| Fault::Refuse);
    let closed = Semel::new(away());
    assert_eq!(closed.claim(Claim::new(&key("1"))).await.unwrap_err().kind(), ErrorKind::Unavailable);
    let open = Semel::builder(away()).on_outage(OnOutage::Open).build().unwrap();
    assert!(matches!(open.claim(Claim::new(&key("1"))).await.unwrap(), Decision::Unprotected(_)));
    assert_eq!(open.stats().unprotected, 1);
}

#[tokio::test]
async fn bloccs_duplicates_are_skipped_and_counted() {
    let world = World::new();
    world.run(&key("1")).await.complete(outcome("done")).await.unwrap();
    for _ in 0..5 {
        assert!(matches!(world.semel.claim(Claim::new(&key("1"))).await.unwrap(), Decision::Replay(_)));
    }
    world.semel.flush().await.unwrap();
    assert_eq!(world.semel.stats().replay, 5);
    assert_eq!(world.semel.get(&key("1")).await.unwrap().unwrap().duplicates.count, 5);
}

#[tokio::test]
async fn bloccs_nobody_releases_anybody_elses_key() {
    let world = World::new();
    let zombie = world.run(&key("1")).await;
    world.clock.advance(LEASE);
    let holder = world.run(&key("1")).await;
    assert_eq!(zombie.release("not mine").await.unwrap(), ReleaseAnswer::NotHolding);
    holder.complete(outcome("done")).await.unwrap();
}

#[tokio::test]
async fn bloccs_a_duplicate_of_a_running_message_is_told_from_one_of_a_done_message() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    assert_eq!(world.semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy");
    // Had the duplicate been acknowledged, the message would be lost now.
    permit.release("the first one failed").await.unwrap();
    assert_eq!(world.run(&key("1")).await.attempt(), 2);
}

#[test]
fn bloccs_an_absent_key_is_refused_and_collides_with_nothing() {
    for absent in ["", " ", "\t\n"] {
        assert_eq!(Key::new("message", absent).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
