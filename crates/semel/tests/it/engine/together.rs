//! Calls on several permits at once: each permit has its own answer, its own lease and the reason that was given.

use std::sync::Arc;
use std::time::Duration;

use semel::record::{PermitId, State};
use semel::store::{MemoryStore, Store};
use semel::{Claim, ClaimedAll, Error, ErrorKind, Key, Permit, ReleaseAnswer, Renewal, Semel};
use semel_testkit::{PausingStore, Point};

use crate::world::{World, key, outcome, replayed};

const NAMES: [&str; 3] = ["1", "2", "3"];

async fn claim_three(semel: &Semel) -> Vec<Permit> {
    let claims = NAMES.map(|name| Claim::new(&key(name))).into_iter().collect();
    let ClaimedAll::Run(permits) = semel.claim_all(claims).await.unwrap() else { panic!() };
    permits
}

#[tokio::test]
async fn a_permit_that_was_handed_on_does_not_mix_up_the_answers_of_the_others() {
    let world = World::new();
    let mut permits = claim_three(&world.semel).await;
    // Nothing is known of the record of this one, so it is loaded while the others are swapped.
    permits[1] = world.semel.permit(permits[1].parts().unwrap());
    let shown = world.semel.get(&key("1")).await.unwrap().unwrap();
    world.another().release_shown(&shown, "stuck", None).await.unwrap();
    let error = world.semel.complete_all(&permits, outcome("paid")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    assert_eq!(permits.iter().map(Permit::is_lost).collect::<Vec<_>>(), [true, false, false]);
    for name in ["2", "3"] {
        assert_eq!(replayed(world.semel.claim(Claim::new(&key(name))).await.unwrap()), "paid");
    }
}

#[tokio::test]
async fn an_unprotected_permit_among_others_is_completed_without_an_error() {
    let world = World::new();
    let mut permits = claim_three(&world.semel).await;
    let why = Error::new(ErrorKind::Unavailable, "the store is away");
    permits.push(world.semel.unprotected(&Claim::new(&key("4")), &why));
    world.semel.complete_all(&permits, outcome("paid")).await.unwrap();
    assert!(world.semel.get(&key("4")).await.unwrap().is_none());
}

#[tokio::test]
async fn each_of_several_leases_is_renewed_for_as_long_as_it_was_granted() {
    let world = World::new();
    let leases = [Duration::from_secs(5), Duration::from_mins(10)];
    let claims = NAMES.iter().zip(leases).map(|(name, lease)| Claim::new(&key(name)).lease(lease)).collect();
    let ClaimedAll::Run(permits) = world.semel.claim_all(claims).await.unwrap() else { panic!() };
    assert_eq!(world.semel.renew_all(&permits).await.unwrap(), [Renewal::Renewed; 2]);
    for (permit, lease) in permits.iter().zip(leases) {
        let record = world.semel.get(permit.key()).await.unwrap().unwrap();
        let State::Running(running) = record.state else { panic!() };
        assert_eq!(running.lease, lease);
    }
}

#[tokio::test]
async fn the_reason_for_releasing_several_is_in_each_record() {
    let world = World::new();
    let permits = claim_three(&world.semel).await;
    let released = world.semel.release_all(&permits, "the order was withdrawn").await.unwrap();
    assert_eq!(released, [ReleaseAnswer::Released; 3]);
    for name in NAMES {
        let record = world.semel.get(&key(name)).await.unwrap().unwrap();
        let State::Released(released) = record.state else { panic!() };
        assert_eq!(&*released.reason, "the order was withdrawn");
    }
}

#[tokio::test]
async fn the_permit_id_of_several_claims_may_be_given_with_any_of_them() {
    for given in 0..NAMES.len() {
        let world = World::new();
        let claims = NAMES.iter().enumerate().map(|(place, name)| {
            let claim = Claim::new(&key(name));
            if place == given { claim.permit_id(PermitId::new(7)) } else { claim }
        });
        let ClaimedAll::Run(permits) = world.semel.claim_all(claims.collect()).await.unwrap() else {
            panic!()
        };
        assert!(permits.iter().all(|permit| permit.id() == PermitId::new(7)), "given with claim {given}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_are_completed_though_their_caller_left_and_another_wrote_first() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let pausing = PausingStore::new(Arc::clone(&store));
    let semel = Semel::builder(pausing.clone()).no_sweep().build().unwrap();
    let another = Semel::builder_shared(store).no_sweep().build().unwrap();
    let permits = claim_three(&semel).await;
    let stop = pausing.stop_at(Point::BeforeSwap);
    let completing = {
        let semel = semel.clone();
        tokio::spawn(async move { semel.complete_all(&permits, outcome("paid")).await })
    };
    stop.reached().await;
    // Counting a duplicate changes the record, so the swap that is about to leave is stale.
    assert_eq!(another.claim(Claim::new(&key("2"))).await.unwrap().as_str(), "busy");
    another.flush().await.unwrap();
    completing.abort();
    assert!(completing.await.unwrap_err().is_cancelled());
    stop.go_on();
    let waiting = another.claim_or_wait(Claim::new(&key("2")), Duration::from_secs(5));
    assert_eq!(replayed(waiting.await.unwrap()), "paid");
}

/// Two keys in the order in which they are claimed, and claims of them under a permit id that the caller brought along
/// with the first.
fn two_under_one_permit_id() -> ([Key; 2], impl Fn() -> Vec<Claim>) {
    let mut keys = ["1", "2"].map(key);
    keys.sort_by_key(Key::id);
    let [first, second] = keys.clone();
    (keys, move || vec![Claim::new(&first).permit_id(PermitId::new(7)), Claim::new(&second)])
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_left_and_asked_again_under_its_permit_id_keeps_its_runs() {
    let (keys, claims) = two_under_one_permit_id();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let pausing = PausingStore::new(Arc::clone(&store));
    let semel = Semel::builder(pausing.clone()).no_sweep().build().unwrap();
    let another = Semel::builder_shared(store).no_sweep().build().unwrap();
    let stop = pausing.stop_at(Point::BeforeSwap.about(keys[1].id()));
    let claiming = {
        let (semel, claims) = (semel.clone(), claims());
        tokio::spawn(async move { semel.claim_all(claims).await.map(drop) })
    };
    stop.reached().await;
    // Whatever the engine does about the first key once the caller has left comes after the caller asked again.
    let give_back = pausing.stop_at(Point::BeforeLoad.about(keys[0].id()));
    claiming.abort();
    assert!(claiming.await.unwrap_err().is_cancelled());
    let ClaimedAll::Run(permits) = another.claim_all(claims()).await.unwrap() else { panic!() };
    give_back.go_on();
    stop.go_on();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for key in &keys {
        let told = another.claim(Claim::new(key)).await.unwrap();
        assert_eq!(told.as_str(), "busy", "its run was given away");
    }
    another.complete_all(&permits, outcome("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_permit_id_that_came_with_one_claim_keeps_the_runs_of_the_others_too() {
    let (keys, claims) = two_under_one_permit_id();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let pausing = PausingStore::new(Arc::clone(&store));
    let semel = Semel::builder(pausing.clone()).no_sweep().build().unwrap();
    let another = Semel::builder_shared(store).no_sweep().build().unwrap();
    let stop = pausing.stop_at(Point::AfterSwap.about(keys[1].id()));
    let claiming = {
        let (semel, claims) = (semel.clone(), claims());
        tokio::spawn(async move { semel.claim_all(claims).await.map(drop) })
    };
    stop.reached().await;
    claiming.abort();
    assert!(claiming.await.unwrap_err().is_cancelled());
    stop.go_on();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let told = another.claim(Claim::new(&keys[1])).await.unwrap();
    assert_eq!(told.as_str(), "busy", "the caller may ask again under its permit id");
}

#[tokio::test]
async fn an_unprotected_permit_among_others_has_an_answer_in_its_place() {
    let world = World::new();
    let mut permits = claim_three(&world.semel).await;
    let why = Error::new(ErrorKind::Unavailable, "the store is away");
    permits.insert(1, world.semel.unprotected(&Claim::new(&key("4")), &why));
    assert_eq!(world.semel.renew_all(&permits).await.unwrap(), [Renewal::Renewed; 4]);
    let (released, not_holding) = (ReleaseAnswer::Released, ReleaseAnswer::NotHolding);
    let answers = world.semel.release_all(&permits, "later").await.unwrap();
    assert_eq!(answers, [released, not_holding, released, released]);
}

#[tokio::test]
async fn an_unprotected_permit_among_others_does_not_shift_what_each_knows_of_its_record() {
    let world = World::new();
    let claims = NAMES
        .iter()
        .zip([1, 2, 3])
        .map(|(name, hours)| Claim::new(&key(name)).retention(Duration::from_hours(hours)));
    let ClaimedAll::Run(mut permits) = world.semel.claim_all(claims.collect()).await.unwrap() else {
        panic!()
    };
    let why = Error::new(ErrorKind::Unavailable, "the store is away");
    permits.insert(0, world.semel.unprotected(&Claim::new(&key("4")), &why));
    world.semel.complete_all(&permits, outcome("paid")).await.unwrap();
    let mut stored = Vec::new();
    for permit in &permits {
        stored.push(world.semel.get(permit.key()).await.unwrap().and_then(|record| record.live_until()));
    }
    let known: Vec<_> = permits.iter().map(Permit::remembered_until).collect();
    assert_eq!(known, stored);
    assert_eq!(known.iter().flatten().count(), 3);
}

#[tokio::test]
async fn claims_that_bring_different_permit_ids_are_refused_and_none_is_claimed() {
    let world = World::new();
    let ids = [None, Some(7), Some(8)];
    let claims = NAMES.iter().zip(ids).map(|(name, id)| {
        let claim = Claim::new(&key(name));
        id.map_or(claim.clone(), |id| claim.permit_id(PermitId::new(id)))
    });
    let error = world.semel.claim_all(claims.collect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    for name in NAMES {
        assert!(world.semel.get(&key(name)).await.unwrap().is_none(), "{name} was claimed");
    }
}
