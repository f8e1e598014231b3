//! liminal: durable and event-sourced.

use std::sync::Arc;
use std::time::Duration;

use semel::store::{MemoryStore, Swap, SwapReply};
use semel::{Claim, Decision, ErrorKind, Key, Outcome, ReleaseAnswer, Semel, codec};
use semel_testkit::{Fault, FaultyStore, sample};

use crate::world::{LEASE, RETENTION, World, granted, key, outcome, replayed};

#[tokio::test]
async fn liminal_claimed_in_flight_completed_and_the_receipt_comes_back_verbatim() {
    let world = World::new();
    let receipt: Vec<u8> = (0..=255).collect();
    let permit = world.run(&key("1")).await;
    assert!(matches!(world.semel.claim(Claim::new(&key("1"))).await.unwrap(), Decision::Busy(_)));
    permit.complete(Outcome::success(receipt.clone())).await.unwrap();
    let Decision::Replay(replay) = world.semel.claim(Claim::new(&key("1"))).await.unwrap() else { panic!() };
    assert_eq!(&**replay.outcome().bytes(), receipt);
}

#[tokio::test]
async fn liminal_the_loser_of_a_race_gets_the_winners_record() {
    let world = World::new();
    let write = sample::running(&sample::ask(&key("1"))).unwrap();
    let swap = || Swap { expected: None, next: write.next.clone(), keep: write.keep };
    let answer = world.store.swap(vec![swap(), swap()].into()).await.unwrap();
    let [SwapReply::Swapped(won), SwapReply::Stale(Some(seen))] = answer.value.as_slice() else { panic!() };
    assert_eq!(won, seen);
}

#[tokio::test]
async fn liminal_the_same_receipt_again_is_fine_another_is_an_error_and_so_is_an_unclaimed_one() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    permit.complete(outcome("receipt")).await.unwrap();
    permit.complete(outcome("receipt")).await.unwrap();
    assert_eq!(permit.complete(outcome("other")).await.unwrap_err().kind(), ErrorKind::Lost);
    let never = world.run(&key("2")).await;
    world.clock.advance(LEASE + RETENTION);
    assert_eq!(never.complete(outcome("late")).await.unwrap_err().kind(), ErrorKind::Lost, "it is gone");
}

#[tokio::test]
async fn liminal_a_release_never_touches_a_receipt_and_loses_politely_to_a_new_claim() {
    let world = World::new();
    let first = world.run(&key("1")).await;
    world.clock.advance(LEASE);
    let second = world.run(&key("1")).await;
    assert_eq!(first.release("late").await.unwrap(), ReleaseAnswer::NotHolding);
    second.complete(outcome("receipt")).await.unwrap();
    assert_eq!(second.release("late").await.unwrap(), ReleaseAnswer::NotHolding);
    assert_eq!(replayed(world.semel.claim(Claim::new(&key("1"))).await.unwrap()), "receipt");
}

#[tokio::test]
async fn liminal_a_lookup_changes_nothing() {
    let world = World::new();
    world.run(&key("1")).await;
    let first = world.semel.get(&key("1")).await.unwrap();
    world.clock.advance(LEASE / 2);
    assert_eq!(world.semel.get(&key("1")).await.unwrap(), first);
    world.clock.advance(LEASE / 2);
    assert_eq!(world.run(&key("1")).await.attempt(), 2, "looking renewed no lease");
}

#[tokio::test(start_paused = true)]
async fn liminal_its_sweeper_really_runs_and_reports() {
    let world = World::new();
    world.run(&key("1")).await.complete(outcome("receipt")).await.unwrap();
    let mut reports = world.semel.sweep_reports();
    reports.changed().await.unwrap();
    assert_eq!(reports.borrow_and_update().removed, 0, "retention starts at completion");
    world.clock.advance(RETENTION);
    reports.changed().await.unwrap();
    assert_eq!(reports.borrow_and_update().removed, 1);
}

#[tokio::test]
async fn liminal_the_codec_is_strict_and_debug_shows_lengths_only() {
    let world = World::new();
    world.run(&key("1")).await.complete(outcome("receipt")).await.unwrap();
    let record = world.semel.get(&key("1")).await.unwrap().unwrap();
    let bytes = codec::encode(&record).unwrap();
    assert_eq!(codec::decode(&bytes).unwrap(), record);
    assert!(codec::decode(&bytes[..bytes.len() - 1]).is_err());
    assert!(codec::decode(&[bytes.as_slice(), &[0]].concat()).is_err());
    assert!(codec::decode(&[&[0], bytes.as_slice()].concat()).is_err());
    assert!(format!("{record:?}").contains("7 bytes"));
    assert!(!format!("{record:?}").contains("receipt"));
}

#[tokio::test]
async fn liminal_names_whose_short_hashes_collide_are_both_kept() {
    let world = World::new();
    for name in ["8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"] {
        world.run(&Key::new("op", name).unwrap()).await.complete(outcome(name)).await.unwrap();
    }
    for name in ["8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"] {
        assert_eq!(
            replayed(world.semel.claim(Claim::new(&Key::new("op", name).unwrap())).await.unwrap()),
            name
        );
    }
}

#[tokio::test]
async fn liminal_namespaces_are_apart() {
    let world = World::new();
    let of = |namespace: &str| Key::scoped([namespace], "op", "1").unwrap();
    world.run(&of("a")).await;
    world.run(&of("b")).await;
}

#[tokio::test(start_paused = true)]
async fn liminal_an_unknown_write_is_settled_by_asking_again() {
    let store = Arc::new(MemoryStore::new());
    let script = [Fault::LoseReply(Duration::ZERO), Fault::None, Fault::LoseReply(Duration::ZERO)];
    let semel = Semel::new(FaultyStore::scripted(store, script));
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    assert_eq!(permit.attempt(), 1);
    permit.complete(outcome("receipt")).await.unwrap();
    assert_eq!(replayed(semel.claim(Claim::new(&key("1"))).await.unwrap()), "receipt");
}

#[tokio::test]
async fn liminal_steps_resume_after_a_crash() {
    let world = World::new();
    let first = world.run(&key("1")).await;
    let value: Result<u32, semel::OnceError<String>> = first.step("charge", async || Ok(7)).await;
    assert_eq!(value.unwrap(), 7);
    drop(first);
    world.clock.advance(LEASE);
    let second = world.run(&key("1")).await;
    let again: Result<u32, semel::OnceError<String>> =
        second.step("charge", async || panic!("repeated")).await;
    assert_eq!(again.unwrap(), 7);
}

#[tokio::test]
async fn liminal_a_zombie_neither_frees_nor_completes_anothers_claim() {
    let world = World::new();
    let zombie = world.run(&key("1")).await;
    world.clock.advance(LEASE);
    let holder = world.run(&key("1")).await;
    assert_eq!(zombie.complete(outcome("zombie")).await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(zombie.release("zombie").await.unwrap(), ReleaseAnswer::NotHolding);
    holder.complete(outcome("holder")).await.unwrap();
}
