//! Tables of settings that meet: what a handler answers, what it says of its answer, and what the rules say; and what a retry
//! then gets.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Request, Response};
use semel::store::Scan;
use semel::{Lapse, OnOutage};
use semel_http::{Code, Decided, DecisionKind, OnServerError, RequestBody, Settings, Settle};
use semel_testkit::{Fault, FaultyStore};
use tokio::sync::Notify;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

use crate::world::{Body, World, answer, charge, read, ruled, send};

/// What a retry finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// The first answer.
    Replay,
    /// Nothing: it runs again.
    Nothing,
    /// A person decides.
    Held,
    /// The first run, whose end is not known.
    Running,
}

use Found::{Held, Nothing, Replay, Running};

fn saying(mut response: Response<Body>, said: Option<Settle>) -> Response<Body> {
    if let Some(said) = said {
        response.extensions_mut().insert(said);
    }
    response
}

async fn found(world: &World, app: &crate::world::App) -> Found {
    let before = world.calls();
    let retry = send(app, charge("k", "{}")).await;
    match (world.calls() - before, retry.is_replay()) {
        (1, false) => Nothing,
        (0, true) => Replay,
        (0, false) if retry.code() == "outcome_held" => Held,
        (0, false) if retry.code() == "in_flight" => Running,
        other => panic!("{other:?}: {} {}", retry.status, retry.text()),
    }
}

#[tokio::test]
async fn what_a_retry_finds_is_what_the_handler_says_or_else_what_the_rules_say_of_the_status() {
    use OnServerError::{Hold, Release, Store};
    for (status, said, [release, store, hold]) in [
        (200, None, [Replay; 3]),
        (404, None, [Replay; 3]),
        (409, None, [Replay; 3]),
        (401, None, [Nothing; 3]),
        (408, None, [Nothing; 3]),
        (425, None, [Nothing; 3]),
        (429, None, [Nothing; 3]),
        (500, None, [Nothing, Replay, Held]),
        (503, None, [Nothing, Replay, Held]),
        (599, None, [Nothing, Replay, Held]),
        (500, Some(Settle::Keep), [Replay; 3]),
        (429, Some(Settle::Keep), [Replay; 3]),
        (200, Some(Settle::Release), [Nothing; 3]),
        (500, Some(Settle::Release), [Nothing; 3]),
        (200, Some(Settle::Hold), [Held; 3]),
        (500, Some(Settle::Hold), [Held; 3]),
        (200, Some(Settle::Unknown), [Running; 3]),
        (500, Some(Settle::Unknown), [Running; 3]),
    ] {
        for (on_server_error, expected) in [(Release, release), (Store, store), (Hold, hold)] {
            let what = format!("{status}, {said:?}, {on_server_error:?}");
            let world = World::new();
            let layer = world.layer(ruled(|rules| rules.on_server_error = on_server_error));
            let app = world.app(&layer, move |_| async move { saying(answer(status, "said"), said) });
            let first = send(&app, charge("k", "{}")).await;
            assert_eq!((first.status, first.text().as_str()), (status, "said"), "{what}");
            assert_eq!(first.headers.contains_key("idempotency-expires"), expected == Replay, "{what}");
            assert_eq!(found(&world, &app).await, expected, "{what}");
            assert_eq!(layer.running(), 0, "{what}");
        }
    }
}

#[tokio::test]
async fn a_refusal_of_an_inner_layer_is_settled_by_what_it_says_and_never_by_its_status() {
    for on_server_error in [OnServerError::Release, OnServerError::Store, OnServerError::Hold] {
        for (is_inner_down, code, expected) in
            [(true, "store_unavailable", Nothing), (false, "outcome_unknown", Running)]
        {
            let what = format!("{code}, {on_server_error:?}");
            let (world, within) = (World::new(), World::new());
            let faults = move |_| if is_inner_down { Fault::Refuse } else { Fault::None };
            let store = Arc::new(FaultyStore::new(Arc::clone(&within.store), faults));
            let settings = Settings { scope: vec!["inner".into()], ..Settings::default() };
            let inner =
                World::layer_on(store, settings).layer(service_fn(|_: Request<RequestBody<_>>| async {
                    panic!("on purpose: the inner layer answers that the outcome is unknown");
                    #[expect(unreachable_code, reason = "says what the service would answer")]
                    Ok::<_, Infallible>(answer(201, ""))
                }));
            let inner = BoxCloneSyncService::new(inner);
            let layer = world.layer(ruled(|rules| rules.on_server_error = on_server_error));
            let app = world.app(&layer, move |request| {
                let answered = inner.clone().oneshot(request);
                async move {
                    let Ok(response) = answered.await;
                    response.map(http_body_util::BodyExt::boxed_unsync)
                }
            });
            let first = send(&app, charge("k", "{}")).await;
            assert_eq!((first.status >= 500, first.code().as_str()), (true, code), "{what}");
            assert_eq!(found(&world, &app).await, expected, "{what}");
        }
    }
}

#[tokio::test]
async fn only_a_failure_that_its_handler_did_not_release_itself_is_remembered_as_an_attempt() {
    for (status, said, attempts_max, remembered) in [
        (500, None, None, true),
        (503, Some(Settle::Release), None, false),
        (200, Some(Settle::Release), None, false),
        (401, None, None, false),
        (503, Some(Settle::Release), Some(3), true),
        (401, None, Some(3), true),
    ] {
        let what = format!("{status}, {said:?}, {attempts_max:?}");
        let world = World::new();
        let layer = world.layer(ruled(|rules| rules.attempts_max = attempts_max));
        let app = world.app(&layer, move |_| async move { saying(answer(status, "no"), said) });
        send(&app, charge("k", "{}")).await;
        world.clock.advance(Duration::from_hours(1));
        world.store.sweep(10_000).await.unwrap();
        let page = world.store.scan(Scan { limit: 10, ..Scan::default() }).await.unwrap().value;
        let attempts: Vec<_> = page.records.iter().map(|record| record.attempt).collect();
        assert_eq!(attempts, if remembered { vec![1] } else { Vec::new() }, "{what}");
    }
}

#[tokio::test]
async fn runs_are_counted_up_to_the_most_and_then_the_key_is_held() {
    for status in [500, 401] {
        let world = World::new();
        let layer = world.layer(ruled(|rules| rules.attempts_max = Some(2)));
        let app = world.app(&layer, move |_| async move { answer(status, "no") });
        assert_eq!(send(&app, charge("k", "{}")).await.status, status);
        assert_eq!(found(&world, &app).await, Nothing, "{status}");
        assert_eq!((found(&world, &app).await, world.calls()), (Held, 2), "{status}");
    }
}

#[tokio::test]
async fn a_run_that_lost_its_key_is_never_answered_with_its_own_response_whatever_the_policy() {
    for policy in [OnOutage::Closed, OnOutage::Open] {
        let world = World::new();
        let layer = world.layer(ruled(|rules| {
            rules.lease = Duration::from_secs(10);
            rules.lapse = Lapse::Rerun;
            rules.on_outage = policy;
        }));
        let (calls, opened) = (Arc::clone(&world.calls), Arc::new(Notify::new()));
        let gate = Arc::clone(&opened);
        let app = world.app(&layer, move |_| {
            let (number, gate) = (calls.load(Ordering::SeqCst), Arc::clone(&gate));
            async move {
                if number == 1 {
                    gate.notified().await;
                }
                answer(201, &format!("run {number}"))
            }
        });
        let first = tokio::spawn(app.clone().oneshot(charge("k", "{}")));
        while world.calls() == 0 {
            tokio::task::yield_now().await;
        }
        world.clock.advance(Duration::from_secs(11));
        assert_eq!(send(&app, charge("k", "{}")).await.text(), "run 2");
        opened.notify_one();
        let first = read(first.await.unwrap().unwrap()).await;
        assert_eq!((first.status, first.code().as_str()), (504, "outcome_unknown"), "{policy:?}");
        assert!(!first.headers.contains_key("idempotency-protected"), "{policy:?}");
        let retry = send(&app, charge("k", "{}")).await;
        assert_eq!((retry.is_replay(), retry.text().as_str()), (true, "run 2"), "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_kept_is_told_by_the_policy() {
    for (policy, status, protected) in [(OnOutage::Closed, 504, None), (OnOutage::Open, 201, Some("false"))] {
        let world = World::new();
        let calls = Arc::clone(&world.calls);
        let faults = move |_| if calls.load(Ordering::SeqCst) > 0 { Fault::Refuse } else { Fault::None };
        let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), faults));
        let layer = World::layer_on(store, ruled(|rules| rules.on_outage = policy));
        let app = world.app(&layer, |_| async { answer(201, "ran") });
        let response = app.oneshot(charge("k", "{}")).await.unwrap();
        let decided = *response.extensions().get::<Decided>().expect("every decision is known");
        let code = (policy == OnOutage::Closed).then_some(Code::OutcomeUnknown);
        assert_eq!((decided.decision, decided.code), (DecisionKind::Run, code));
        let told = read(response).await;
        let said = told.headers.get("idempotency-protected").map(|value| value.to_str().unwrap());
        assert_eq!((told.status, said), (status, protected), "{policy:?}");
    }
}

#[tokio::test]
async fn every_decision_is_known_to_what_is_outside_of_the_layer() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| rules.on_server_error = OnServerError::Hold));
    let app = world.app(&layer, |request| async move {
        match request.headers()["idempotency-key"].to_str().unwrap() {
            "failing" => answer(500, "no"),
            "unknown" => saying(answer(200, "perhaps"), Some(Settle::Unknown)),
            _ => answer(201, "made"),
        }
    });
    let mut nobody = charge("k", "{}");
    nobody.headers_mut().remove("authorization");
    for (request, decision, code) in [
        (charge("k", "{}"), DecisionKind::Run, None),
        (charge("k", "{}"), DecisionKind::Replay, None),
        (charge("k", "{\"other\":1}"), DecisionKind::Mismatch, Some(Code::Mismatch)),
        (charge("failing", "{}"), DecisionKind::Run, None),
        (charge("failing", "{}"), DecisionKind::Held, Some(Code::OutcomeHeld)),
        (charge("unknown", "{}"), DecisionKind::Run, None),
        (charge("unknown", "{}"), DecisionKind::Busy, Some(Code::InFlight)),
        (nobody, DecisionKind::Refused, Some(Code::CallerUnknown)),
    ] {
        let response = app.clone().oneshot(request).await.unwrap();
        let decided = *response.extensions().get::<Decided>().expect("every decision is known");
        assert_eq!((decided.decision, decided.code), (decision, code));
        assert_eq!(decided.key.is_some(), decision != DecisionKind::Refused, "{decision:?}");
    }
}
