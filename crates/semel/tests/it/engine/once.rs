//! `once`: the whole cycle around a function.

use std::sync::atomic::{AtomicU32, Ordering};

use semel::{Claim, ErrorKind, OnFailure, Once, OnceError, Outcome, OutcomeKind, Permit};

use crate::world::{LEASE, World, key};

type Ended = Result<Once<String>, OnceError<String>>;

async fn charge(world: &World, calls: &AtomicU32, ended: Result<&str, &str>) -> Ended {
    world
        .semel
        .once(&key("1"), &("EUR", 42), async |_permit: Permit| {
            calls.fetch_add(1, Ordering::SeqCst);
            ended.map(str::to_owned).map_err(str::to_owned)
        })
        .await
}

#[tokio::test]
async fn the_function_runs_once_however_often_it_is_called() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    assert!(matches!(charge(&world, &calls, Ok("ch_1")).await.unwrap(), Once::Ran(id) if id == "ch_1"));
    for _ in 0..10 {
        let again = charge(&world, &calls, Ok("ch_2")).await.unwrap();
        assert!(matches!(again, Once::Replayed(id) if id == "ch_1"));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn another_request_under_the_key_is_a_mismatch() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    drop(charge(&world, &calls, Ok("ch_1")).await.unwrap());
    let other = world.semel.once(&key("1"), &("EUR", 43), async |_| Ok::<_, String>("ch_2".to_owned())).await;
    assert!(matches!(other.unwrap(), Once::Mismatch(_)));
}

#[tokio::test]
async fn an_error_releases_the_key_and_the_next_call_runs_again() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    let failed = charge(&world, &calls, Err("card declined")).await;
    assert!(matches!(failed, Err(OnceError::Work(error)) if error == "card declined"));
    assert!(matches!(charge(&world, &calls, Ok("ch_1")).await.unwrap(), Once::Ran(_)));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_error_is_stored_and_replayed_if_the_policy_says_so() {
    let (world, calls) = (World::with(|builder| builder.on_failure(OnFailure::Store)), AtomicU32::new(0));
    assert!(matches!(charge(&world, &calls, Err("card declined")).await, Err(OnceError::Work(_))));
    let again = charge(&world, &calls, Ok("ch_1")).await;
    assert!(matches!(again, Err(OnceError::WorkBefore(text)) if &*text == "card declined"));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_claim_may_differ_from_its_engine_in_what_a_failure_means() {
    for (engine, claim) in [(OnFailure::Release, OnFailure::Store), (OnFailure::Store, OnFailure::Release)] {
        let world = World::with(|builder| builder.on_failure(engine));
        let fail = || {
            world.semel.once_with(Claim::new(&key("1")).on_failure(claim), async |_| Err::<(), _>("declined"))
        };
        assert!(matches!(fail().await, Err(OnceError::Work(_))));
        let is_stored = matches!(fail().await, Err(OnceError::WorkBefore(_)));
        assert_eq!(is_stored, claim == OnFailure::Store, "the engine's is {engine:?}");
    }
}

#[tokio::test]
async fn an_outcome_of_a_kind_of_the_callers_own_is_a_value_and_no_failure() {
    let world = World::new();
    let outcome = Outcome::new(OutcomeKind::Other("partial".into()), r#""half of it""#);
    world.run(&key("1")).await.complete(outcome).await.unwrap();
    let replayed = world.semel.once_with(Claim::new(&key("1")), async |_| Ok::<_, String>("all".to_owned()));
    assert!(matches!(replayed.await.unwrap(), Once::Replayed(value) if value == "half of it"));
}

#[tokio::test]
async fn a_run_that_lost_its_permit_does_not_report_success() {
    let world = World::new();
    let ended = world
        .semel
        .once(&key("1"), &(), async |_| {
            world.clock.advance(LEASE);
            world.run(&key("1")).await;
            Ok::<_, String>("too late".to_owned())
        })
        .await;
    assert!(matches!(ended, Err(OnceError::Engine(error)) if error.kind() == ErrorKind::Lost));
}

#[tokio::test]
async fn a_panic_releases_nothing_and_the_lease_decides() {
    let world = World::new();
    let semel = world.semel.clone();
    let run = tokio::spawn(async move {
        let claim = Claim::new(&key("1"));
        drop(semel.once_with(claim, async |_| -> Result<String, String> { panic!("on purpose") }).await);
    });
    assert!(run.await.unwrap_err().is_panic());
    assert_eq!(world.semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy");
    world.clock.advance(LEASE);
    assert_eq!(world.run(&key("1")).await.attempt(), 2);
}

#[tokio::test]
async fn a_stored_value_of_another_type_is_an_error_that_says_so() {
    let world = World::new();
    let run = world.semel.once(&key("1"), &(), async |_| Ok::<_, String>("text".to_owned())).await;
    assert!(matches!(run, Ok(Once::Ran(_))));
    let other: Result<Once<u64>, OnceError<String>> = world.semel.once(&key("1"), &(), async |_| Ok(7)).await;
    let Err(OnceError::Engine(error)) = other else { panic!() };
    assert!(error.to_string().contains("type asked for"), "{error}");
}

#[tokio::test]
async fn what_the_provider_is_given_is_the_same_on_every_attempt() {
    let world = World::new();
    let first = world.run(&key("1")).await;
    world.clock.advance(LEASE);
    let second = world.run(&key("1")).await;
    assert_eq!(first.derive("provider.charge"), second.derive("provider.charge"));
    assert_ne!(first.derive("provider.charge"), first.derive("provider.refund"));
    assert_ne!(first.derive("provider.charge"), world.run(&key("2")).await.derive("provider.charge"));
}

#[tokio::test(start_paused = true)]
async fn work_whose_outcome_was_not_stored_does_not_report_success() {
    let faults = [semel_testkit::Fault::None, semel_testkit::Fault::Refuse];
    let store =
        semel_testkit::FaultyStore::scripted(std::sync::Arc::new(semel::store::MemoryStore::new()), faults);
    let semel = semel::Semel::builder(store).no_sweep().build().unwrap();
    let ended = semel.once(&key("1"), &(), async |_| Ok::<_, String>(1)).await;
    let Err(OnceError::Engine(error)) = ended else { panic!("{ended:?}") };
    assert_eq!(error.kind(), semel::ErrorKind::Unavailable);
}
