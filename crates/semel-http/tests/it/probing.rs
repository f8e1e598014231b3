//! H57 on the layer: what a probe answers is what becomes of a run whose end was not known.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use semel_http::{Probe, ProbeAnswer, Reply};

use crate::world::{App, Told, World, answer, charge, ruled, send};

const LEASE: Duration = Duration::from_mins(1);

/// A key whose first run ended without a known outcome and whose lease has lapsed, and how often the probe was asked.
async fn lapsed(found: Option<ProbeAnswer>) -> (World, App, Arc<AtomicUsize>) {
    let (world, asked) = (World::new(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&asked);
    let probe = Probe::new(move |request| {
        assert_eq!((&*request.key, request.target.path()), ("k", "/charges"));
        counted.fetch_add(1, Ordering::SeqCst);
        let found = found.clone();
        async move {
            match found {
                Some(found) => found,
                None => pending().await,
            }
        }
    })
    .timeout(Duration::from_millis(50));
    let layer = world.layer(ruled(|rules| rules.probe = Some(probe)));
    let calls = Arc::clone(&world.calls);
    let app = world.app(&layer, move |_| {
        let is_first = calls.load(Ordering::SeqCst) == 1;
        async move {
            let mut response = answer(201, "ran");
            if is_first {
                response.extensions_mut().insert(semel_http::Settle::Unknown);
            }
            response
        }
    });
    send(&app, charge("k", "{}")).await;
    assert_eq!(asked.load(Ordering::SeqCst), 0, "nothing has lapsed");
    world.clock.advance(LEASE + Duration::from_secs(1));
    (world, app, asked)
}

fn is_held(told: &Told) {
    assert_eq!((told.status, told.code().as_str()), (409, "outcome_held"));
    assert_eq!(told.headers.get("retry-after").and_then(|value| value.to_str().ok()), Some("10"));
}

#[tokio::test]
async fn h57_a_run_that_landed_is_replayed_with_the_probes_response() {
    let reply = Reply::new(StatusCode::CREATED, "charge 7").header("location", "/charges/7").unwrap();
    let reply = reply.header("set-cookie", "a=b").unwrap();
    let (world, app, asked) = lapsed(Some(ProbeAnswer::Landed(reply))).await;
    for _ in 0..2 {
        let told = send(&app, charge("k", "{}")).await;
        assert!(told.is_replay());
        assert_eq!((told.status, told.text().as_str()), (201, "charge 7"));
        assert_eq!(told.headers.get("location").unwrap(), "/charges/7");
        assert!(told.headers.get("set-cookie").is_none());
    }
    assert_eq!((world.calls(), asked.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn h57_a_run_that_did_not_land_runs_again() {
    let (world, app, asked) = lapsed(Some(ProbeAnswer::NotLanded)).await;
    let told = send(&app, charge("k", "{}")).await;
    assert_eq!((told.status, told.text().as_str(), told.is_replay()), (201, "ran", false));
    assert!(send(&app, charge("k", "{}")).await.is_replay());
    assert_eq!((world.calls(), asked.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test]
async fn h57_a_probe_that_cannot_tell_or_is_too_slow_leaves_the_key_held_and_is_asked_every_10_s() {
    for found in [Some(ProbeAnswer::CannotTell), None] {
        let (world, app, asked) = lapsed(found).await;
        is_held(&send(&app, charge("k", "{}")).await);
        is_held(&send(&app, charge("k", "{}")).await);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        world.clock.advance(Duration::from_secs(10));
        is_held(&send(&app, charge("k", "{}")).await);
        assert_eq!((world.calls(), asked.load(Ordering::SeqCst)), (1, 2));
    }
}

#[tokio::test]
async fn h57_another_request_under_the_key_is_a_mismatch_and_is_not_probed() {
    let (world, app, asked) = lapsed(Some(ProbeAnswer::NotLanded)).await;
    assert_eq!(send(&app, charge("k", "{\"other\":1}")).await.status, 422);
    assert_eq!((world.calls(), asked.load(Ordering::SeqCst)), (1, 0));
}
