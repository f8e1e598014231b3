//! Several keys at once, and keys that must never be taken for one another.

use std::sync::Arc;

use semel::store::MemoryStore;
use semel::{Claim, ClaimedAll, Decision, ErrorKind, Key, Semel};
use semel_testkit::{Call, PausingStore};

use crate::world::{World, key, outcome};

fn both() -> Vec<Claim> {
    vec![Claim::new(&key("event")), Claim::new(&key("digest"))]
}

#[tokio::test]
async fn all_keys_are_claimed_or_none_is() {
    let world = World::new();
    let ClaimedAll::Run(permits) = world.semel.claim_all(both()).await.unwrap() else { panic!() };
    assert_eq!(permits.iter().map(|permit| permit.key().name()).collect::<Vec<_>>(), ["event", "digest"]);
    for permit in &permits {
        permit.release("done with it").await.unwrap();
    }
    for taken in ["event", "digest"] {
        let permit = world.run(&key(taken)).await;
        let refused = world.semel.claim_all(both()).await.unwrap();
        let ClaimedAll::Refused { key: refused, decision } = refused else { panic!() };
        assert_eq!(refused, key(taken));
        assert!(matches!(*decision, Decision::Busy(_)));
        permit.release("the other one is free again, too").await.unwrap();
        let other = if taken == "event" { "digest" } else { "event" };
        world.run(&key(other)).await.release("it was").await.unwrap();
    }
}

#[tokio::test]
async fn keys_are_claimed_in_the_order_of_their_digests_and_permits_come_in_the_order_of_the_claims() {
    let mut keys = ["1", "2", "3", "4"].map(key);
    keys.sort_by_key(Key::id);
    for _ in 0..2 {
        let pausing = PausingStore::new(Arc::new(MemoryStore::new()));
        let semel = Semel::builder(pausing.clone()).no_sweep().build().unwrap();
        let claims = keys.iter().map(Claim::new).collect();
        let ClaimedAll::Run(permits) = semel.claim_all(claims).await.unwrap() else { panic!() };
        assert!(permits.iter().map(semel::Permit::key).eq(&keys));
        let asked = pausing.batches(Call::Swap).concat();
        assert!(asked.len() == 4 && asked.is_sorted(), "two callers could hold one key each: {asked:?}");
        keys.reverse();
    }
}

#[tokio::test]
async fn one_key_twice_in_a_list_is_refused() {
    let world = World::new();
    let twice = vec![Claim::new(&key("event")), Claim::new(&key("event"))];
    assert_eq!(world.semel.claim_all(twice).await.unwrap_err().kind(), ErrorKind::Invalid);
    world.run(&key("event")).await;
}

#[tokio::test]
async fn two_callers_with_the_same_keys_never_hold_one_each() {
    let world = World::new();
    for round in 0..200 {
        let keys: Vec<Key> = (0..4).map(|n| key(&format!("{round}-{n}"))).collect();
        let claims = |keys: &mut dyn Iterator<Item = &Key>| keys.map(Claim::new).collect::<Vec<_>>();
        let (here, there) = (world.semel.clone(), world.another());
        let (forward, backward) = (claims(&mut keys.iter()), claims(&mut keys.iter().rev()));
        let (a, b) = tokio::join!(here.claim_all(forward), there.claim_all(backward));
        let runs = [a.unwrap(), b.unwrap()].iter().filter(|all| matches!(all, ClaimedAll::Run(_))).count();
        assert_eq!(runs, 1);
    }
}

#[tokio::test]
async fn tenants_never_see_each_other() {
    let world = World::new();
    let of = |scope: &[&str], operation: &str, name: &str| Key::scoped(scope, operation, name).unwrap();
    let keys = [
        of(&["a", "bc"], "op", "n"),
        of(&["ab", "c"], "op", "n"),
        of(&["a"], "bc", "op"),
        of(&[], "a", "bc"),
        of(&["a", "bc", "op"], "n", "x"),
        of(&["A", "bc"], "op", "n"),
    ];
    for (number, key) in keys.iter().enumerate() {
        world.run(key).await.complete(outcome(&number.to_string())).await.unwrap();
    }
    for (number, key) in keys.iter().enumerate() {
        let Decision::Replay(replay) = world.semel.claim(Claim::new(key)).await.unwrap() else { panic!() };
        assert_eq!(&**replay.outcome().bytes(), number.to_string().as_bytes());
        assert_eq!(replay.record().key, *key);
    }
}
