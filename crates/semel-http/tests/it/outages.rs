//! The store does not answer: before the run, and after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use semel::OnOutage;
use semel::store::Store;
use semel_http::Settings;
use semel_testkit::{Fault, FaultyStore};

use crate::world::{World, answer, charge, ruled, send};

/// A store that answers while it is told to.
fn breakable(world: &World, fault: Fault) -> (Arc<dyn Store>, Arc<AtomicBool>) {
    let is_down = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_down);
    let choose = move |_| if told.load(Ordering::SeqCst) { fault } else { Fault::None };
    (Arc::new(FaultyStore::new(Arc::clone(&world.store), choose)), is_down)
}

#[tokio::test]
async fn nobody_sees_a_response_whose_outcome_could_not_be_kept() {
    let world = World::new();
    let (store, is_down) = breakable(&world, Fault::Refuse);
    let settings = Settings { store_timeout: Duration::from_millis(100), ..Settings::default() };
    let app = world.app(&World::layer_on(store, settings), move |_| {
        is_down.store(true, Ordering::SeqCst);
        async { answer(201, "charged") }
    });
    let told = send(&app, charge("k", "{}")).await;
    assert_eq!((told.status, told.code().as_str(), world.calls()), (504, "outcome_unknown", 1));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_in_time_keeps_the_outcome() {
    // The engine itself asks again after a few lost replies; after more than that, the layer does.
    for (fault, mut fails) in [
        (Fault::LoseReply(Duration::ZERO), 3),
        (Fault::LoseReply(Duration::ZERO), 12),
        (Fault::LoseAsk(Duration::ZERO), 12),
    ] {
        let world = World::new();
        let calls = Arc::clone(&world.calls);
        let choose = move |_| {
            let has_run = calls.load(Ordering::SeqCst) > 0;
            if has_run && fails > 0 {
                fails -= 1;
                return fault;
            }
            Fault::None
        };
        let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), choose));
        let layer = World::layer_on(store, Settings::default());
        let app = world.app(&layer, |_| async { answer(201, "charged") });
        assert_eq!(send(&app, charge("k", "{}")).await.status, 201, "{fault:?}");
        assert!(send(&app, charge("k", "{}")).await.is_replay(), "{fault:?}");
        assert_eq!(world.calls(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_for_a_while_keeps_the_outcome_once_it_takes_it() {
    let world = World::new();
    let mut refusals = 5;
    let calls = Arc::clone(&world.calls);
    let choose = move |_| {
        let refuses = calls.load(Ordering::SeqCst) > 0 && refusals > 0;
        refusals -= i32::from(refuses);
        if refuses { Fault::Refuse } else { Fault::None }
    };
    let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), choose));
    let app = world.app(&World::layer_on(store, Settings::default()), |_| async { answer(201, "charged") });
    assert_eq!(send(&app, charge("k", "{}")).await.status, 201);
    let retry = send(&app, charge("k", "{}")).await;
    assert_eq!((retry.is_replay(), world.calls()), (true, 1));
}

#[tokio::test]
async fn an_open_policy_answers_and_says_that_nothing_protects() {
    let world = World::new();
    let (store, is_down) = breakable(&world, Fault::Refuse);
    is_down.store(true, Ordering::SeqCst);
    let app = world
        .app(&World::layer_on(store, ruled(|rules| rules.on_outage = OnOutage::Open)), |_| async {
            answer(201, "charged")
        });
    let told = send(&app, charge("k", "{}")).await;
    assert_eq!((told.status, &told.headers["idempotency-protected"]), (201, &"false".parse().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_given_up_on_and_nothing_runs() {
    for (policy, status, calls) in [(OnOutage::Closed, 503, 0), (OnOutage::Open, 201, 1)] {
        let world = World::new();
        let (store, is_down) = breakable(&world, Fault::Delay(Duration::from_hours(1)));
        is_down.store(true, Ordering::SeqCst);
        let app = world.app(&World::layer_on(store, ruled(|rules| rules.on_outage = policy)), |_| async {
            answer(201, "charged")
        });
        let told = send(&app, charge("k", "{}")).await;
        assert_eq!((told.status, world.calls()), (status, calls));
        assert_eq!(told.headers.contains_key("retry-after"), policy == OnOutage::Closed);
    }
}
