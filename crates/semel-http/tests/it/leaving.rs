//! Clients that go away, and handlers that panic.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use semel::Lapse;
use semel_http::Settings;
use tokio::sync::Semaphore;
use tower::{Service, ServiceExt};

use crate::world::{World, answer, charge, ruled, send};

/// Polls a future once and drops it, as a server does whose client hung up.
fn poll_and_drop(future: impl Future) {
    let polled = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "it was to be dropped half way");
}

#[tokio::test]
async fn a_client_that_hangs_up_cancels_nothing_and_its_retry_replays() {
    let world = World::new();
    let layer = world.layer(Settings::default());
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let app = world.app(&layer, move |_| {
        let gate = Arc::clone(&opened);
        async move {
            drop(gate.acquire().await);
            answer(201, "charged")
        }
    });
    poll_and_drop(app.clone().call(charge("k", "{}")));
    assert_eq!((world.calls(), layer.running()), (1, 1));
    assert_eq!(send(&app, charge("k", "{}")).await.code(), "in_flight");
    gate.add_permits(1);
    layer.none_running().await;
    let retry = send(&app, charge("k", "{}")).await;
    assert!(retry.is_replay());
    assert_eq!((retry.status, &*retry.body, world.calls()), (201, &b"charged"[..], 1));
}

#[tokio::test]
async fn a_panic_is_told_as_unknown_and_the_lease_decides() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| {
        rules.lease = Duration::from_secs(10);
        rules.lapse = Lapse::Rerun;
    }));
    let calls = Arc::clone(&world.calls);
    let app = world.app(&layer, move |_| {
        let is_first = calls.load(std::sync::atomic::Ordering::SeqCst) == 1;
        async move {
            assert!(!is_first, "the first call panics, on purpose");
            answer(201, "charged")
        }
    });
    let first = send(&app, charge("k", "{}")).await;
    assert_eq!((first.status, first.code().as_str()), (500, "outcome_unknown"));
    assert_eq!(layer.running(), 0);
    let second = send(&app, charge("k", "{}")).await;
    assert_eq!((second.status, second.code().as_str()), (409, "in_flight"));
    world.clock.advance(Duration::from_secs(11));
    let third = send(&app, charge("k", "{}")).await;
    assert_eq!((third.status, third.is_replay(), world.calls()), (201, false, 2));
}

#[tokio::test]
async fn a_panic_before_the_first_await_of_a_handler_is_answered_like_any_other() {
    let world = World::new();
    let layer = world.layer(Settings::default());
    let calls = Arc::clone(&world.calls);
    let app = world.app(&layer, move |_| {
        let is_first = calls.load(std::sync::atomic::Ordering::SeqCst) == 1;
        assert!(!is_first, "the first call panics, on purpose");
        async { answer(201, "charged") }
    });
    let first = send(&app, charge("k", "{}")).await;
    assert_eq!((first.status, first.code().as_str()), (500, "outcome_unknown"));
    assert_eq!((layer.running(), layer.held_bytes()), (0, 0));
    assert_eq!(send(&app, charge("k", "{}")).await.code(), "in_flight");
    assert_eq!(send(&app, charge("other", "{}")).await.status, 201);
}

#[tokio::test]
async fn a_client_that_leaves_before_anything_ran_leaves_nothing_behind() {
    let world = World::new();
    let layer = world.layer(Settings::default());
    let app = world.app(&layer, |_| async { answer(201, "charged") });
    drop(app.clone().call(charge("k", "{}")));
    assert_eq!(world.calls(), 0);
    let other_request = send(&app, charge("k", "{\"other\":1}")).await;
    assert_eq!((other_request.status, world.calls()), (201, 1));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_the_handler_takes_long() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| rules.lease = Duration::from_secs(3)));
    let clock = world.clock.clone();
    let app = world.app(&layer, move |_| {
        let clock = clock.clone();
        async move {
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_millis(500)).await;
                clock.advance(Duration::from_millis(500));
            }
            answer(201, "charged")
        }
    });
    let first = tokio::spawn(app.clone().oneshot(charge("k", "{}")));
    // Well past the lease, and well before the end of the run.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(send(&app, charge("k", "{}")).await.code(), "in_flight");
    assert_eq!(first.await.unwrap().unwrap().status(), 201);
    assert_eq!(world.calls(), 1);
}
