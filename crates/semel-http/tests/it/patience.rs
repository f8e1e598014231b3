//! How long the layer waits: for a run under the same key, for a store that is slow, for a body that is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use semel::Lapse;
use semel_http::{OnServerError, Settings, Settle, WhileRunning};
use semel_testkit::{Call, Fault, FaultyStore, PausingStore, Point};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use crate::world::{App, World, answer, charge, read, ruled, send};

const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// A layer whose second requests wait for this long, around a handler that takes 3 s.
fn waiting(world: &World, span: Duration) -> App {
    let mut settings = ruled(|rules| rules.while_running = WhileRunning::Wait(span));
    settings.store_timeout = STORE_TIMEOUT;
    world.app(&world.layer(settings), |_| async {
        sleep(Duration::from_secs(3)).await;
        answer(201, "slow")
    })
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_another_is_not_taken_for_one_whose_store_is_slow() {
    let world = World::new();
    let app = waiting(&world, Duration::from_secs(10));
    let (first, second) = tokio::join!(send(&app, charge("k", "{}")), send(&app, charge("k", "{}")));
    assert_eq!((first.status, first.is_replay()), (201, false));
    assert_eq!((second.status, second.is_replay(), second.text().as_str()), (201, true, "slow"));
    assert_eq!(world.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_another_as_long_as_the_rules_say_and_no_longer() {
    let world = World::new();
    let app = waiting(&world, Duration::from_secs(2));
    let started_at = Instant::now();
    let second = async {
        let told = send(&app, charge("k", "{}")).await;
        (told, started_at.elapsed())
    };
    let (_, (second, took)) = tokio::join!(send(&app, charge("k", "{}")), second);
    assert_eq!((second.status, second.code().as_str()), (409, "in_flight"));
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_a_slow_store_keeps_the_outcome() {
    let world = World::new();
    let store = PausingStore::new(Arc::clone(&world.store));
    let mut settings = ruled(|rules| {
        rules.lease = Duration::from_secs(3);
        rules.lapse = Lapse::Rerun;
    });
    settings.store_timeout = Duration::from_mins(1);
    let app = world.app(&World::layer_on(Arc::new(store.clone()), settings.clone()), |_| async {
        answer(201, "kept late")
    });
    let other_process = world.app(&world.layer(settings), |_| async { answer(201, "ran twice") });
    // The first swap claims, the second completes.
    let completing = store.stop_at(Point::BeforeSwap.nth(2));
    let first = tokio::spawn(app.clone().oneshot(charge("k", "{}")));
    completing.reached().await;
    for _ in 0..20 {
        sleep(Duration::from_millis(500)).await;
        world.clock.advance(Duration::from_millis(500));
    }
    assert_eq!(send(&other_process, charge("k", "{}")).await.code(), "in_flight");
    completing.go_on();
    assert_eq!(read(first.await.unwrap().unwrap()).await.text(), "kept late");
    assert!(send(&other_process, charge("k", "{}")).await.is_replay());
    assert_eq!(world.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_after_the_run_keeps_no_client_waiting_for_longer_than_its_timeout() {
    for (settle, status) in [
        (Settle::Keep, 504),
        (Settle::Completed, 504),
        (Settle::Release, 200),
        (Settle::Hold, 200),
        (Settle::Unknown, 200),
    ] {
        let world = World::new();
        let (hangs, has_run) = (Fault::Delay(Duration::from_hours(1)), Arc::clone(&world.calls));
        let choose = move |_| if has_run.load(Ordering::SeqCst) > 0 { hangs } else { Fault::None };
        let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), choose));
        let settings = Settings { store_timeout: STORE_TIMEOUT, ..Settings::default() };
        let app = world.app(&World::layer_on(store, settings), move |_| async move {
            let mut response = answer(200, "ran");
            response.extensions_mut().insert(settle);
            response
        });
        let started_at = Instant::now();
        let told = send(&app, charge("k", "{}")).await;
        assert_eq!((told.status, started_at.elapsed()), (status, STORE_TIMEOUT), "{settle:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_after_the_run_is_asked_again_until_its_timeout_and_ever_less_often() {
    let world = World::new();
    let (has_run, asked) = (Arc::clone(&world.calls), Arc::new(std::sync::Mutex::new(Vec::new())));
    let asked_at = Arc::clone(&asked);
    let choose = move |call| {
        if call == Call::Swap && has_run.load(Ordering::SeqCst) > 0 {
            asked_at.lock().unwrap().push(Instant::now());
            return Fault::Refuse;
        }
        Fault::None
    };
    let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), choose));
    let settings = Settings { store_timeout: Duration::from_secs(5), ..Settings::default() };
    let app = world.app(&World::layer_on(store, settings), |_| async { answer(201, "ran") });
    let started_at = Instant::now();
    assert_eq!(send(&app, charge("k", "{}")).await.code(), "outcome_unknown");
    assert_eq!(started_at.elapsed(), Duration::from_secs(5));
    let asked = asked.lock().unwrap().clone();
    assert!(asked.len() > 8 && asked.len() < 30, "asked {} times", asked.len());
    let pauses: Vec<_> = asked.windows(2).map(|two| two[1].duration_since(two[0])).collect();
    assert!(pauses.iter().all(|pause| *pause <= Duration::from_millis(501)), "{pauses:?}");
    assert!(pauses[0] < Duration::from_millis(30), "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_error_that_is_held_is_held_also_while_its_lease_is_renewed() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| {
        rules.lease = Duration::from_secs(3);
        rules.on_server_error = OnServerError::Hold;
    }));
    let (clock, was_renewed) = (world.clock.clone(), Arc::new(AtomicBool::new(false)));
    let renewed = Arc::clone(&was_renewed);
    let app = world.app(&layer, move |_| {
        let (clock, renewed) = (clock.clone(), Arc::clone(&renewed));
        async move {
            for _ in 0..10 {
                sleep(Duration::from_millis(500)).await;
                clock.advance(Duration::from_millis(500));
            }
            renewed.store(true, Ordering::SeqCst);
            answer(500, "late")
        }
    });
    assert_eq!(send(&app, charge("k", "{}")).await.status, 500);
    assert!(was_renewed.load(Ordering::SeqCst));
    assert_eq!((send(&app, charge("k", "{}")).await.code().as_str(), world.calls()), ("outcome_held", 1));
    // Nothing renews a lease that there is no run for.
    sleep(Duration::from_secs(10)).await;
    assert_eq!(send(&app, charge("k", "{}")).await.code(), "outcome_held");
}
