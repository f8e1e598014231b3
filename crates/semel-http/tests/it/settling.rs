//! What becomes of a response: by its status, by the rules, and by what its handler says.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use semel::Lapse;
use semel::store::Scan;
use semel_http::{OnServerError, Reply, Settings, Settle};

use crate::world::{Body, World, answer, charge, ruled, send};

fn saying(mut response: Response<Body>, settle: Settle) -> Response<Body> {
    response.extensions_mut().insert(settle);
    response
}

#[tokio::test]
async fn a_handler_may_say_that_its_answer_is_not_to_be_kept() {
    let world = World::new();
    let app = world
        .app(&world.layer(Settings::default()), |_| async { saying(answer(200, "no"), Settle::Release) });
    for calls in 1..=3 {
        let told = send(&app, charge("k", "{}")).await;
        assert_eq!((told.status, told.is_replay(), world.calls()), (200, false, calls));
        assert!(told.headers.get("idempotency-expires").is_none());
    }
}

#[tokio::test]
async fn a_handler_may_say_that_an_error_is_to_be_kept() {
    let world = World::new();
    let app =
        world.app(&world.layer(Settings::default()), |_| async { saying(answer(503, "gone"), Settle::Keep) });
    send(&app, charge("k", "{}")).await;
    let retry = send(&app, charge("k", "{}")).await;
    assert_eq!((retry.status, retry.is_replay(), world.calls()), (503, true, 1));
}

#[tokio::test]
async fn a_handler_that_does_not_know_leaves_it_to_the_lease() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| {
        rules.lease = Duration::from_secs(10);
        rules.lapse = Lapse::Rerun;
    }));
    let app = world.app(&layer, |_| async { saying(answer(200, "perhaps"), Settle::Unknown) });
    assert_eq!(send(&app, charge("k", "{}")).await.status, 200);
    assert_eq!(send(&app, charge("k", "{}")).await.code(), "in_flight");
    world.clock.advance(Duration::from_secs(11));
    assert_eq!(send(&app, charge("k", "{}")).await.status, 200);
    assert_eq!(world.calls(), 2);
}

#[tokio::test]
async fn h53_a_run_without_a_known_end_is_held_unless_the_rules_say_rerun() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| rules.lease = Duration::from_secs(10)));
    let app = world.app(&layer, |_| async { saying(answer(200, "perhaps"), Settle::Unknown) });
    assert_eq!(send(&app, charge("k", "{}")).await.status, 200);
    world.clock.advance(Duration::from_secs(11));
    assert_eq!(send(&app, charge("k", "{}")).await.code(), "outcome_held");
    assert_eq!(world.calls(), 1);
}

#[tokio::test]
async fn a_retry_hears_that_the_outcome_is_unknown_until_another_run_has_the_key() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| {
        rules.lease = Duration::from_secs(30);
        rules.lapse = semel::Lapse::Rerun;
    }));
    let (calls, opened) = (world.calls.clone(), Arc::new(tokio::sync::Notify::new()));
    let gate = Arc::clone(&opened);
    let app = world.app(&layer, move |_| {
        let (number, gate) = (calls.load(std::sync::atomic::Ordering::SeqCst), Arc::clone(&gate));
        async move {
            if number == 1 {
                return saying(answer(200, "perhaps"), Settle::Unknown);
            }
            gate.notified().await;
            answer(200, "surely")
        }
    });
    let first = send(&app, charge("k", "{}")).await;
    assert_eq!((first.status, first.headers.get("retry-after")), (200, None), "a handler's own words stay");
    world.clock.advance(Duration::from_secs(10));
    let retry = send(&app, charge("k", "{}")).await;
    assert_eq!((retry.code().as_str(), &retry.headers["retry-after"]), ("in_flight", &"20".parse().unwrap()));
    assert!(retry.text().contains("its outcome is not known"), "{}", retry.text());
    world.clock.advance(Duration::from_secs(20));
    let second = send(&app, charge("k", "{}"));
    let meanwhile = async {
        while world.calls() < 2 {
            tokio::task::yield_now().await;
        }
        let retry = send(&app, charge("k", "{}")).await;
        assert!(retry.code() == "in_flight" && retry.text().contains("still runs"), "{}", retry.text());
        opened.notify_one();
    };
    let (second, ()) = tokio::join!(second, meanwhile);
    assert_eq!(&*second.body, b"surely");
}

#[tokio::test]
async fn answers_that_are_not_kept_leave_nothing_in_the_store_after_a_minute() {
    let world = World::new();
    let app = world.app(&world.layer(Settings::default()), |_| async { answer(401, "who are you?") });
    for number in 0..100 {
        for _ in 0..3 {
            assert_eq!(send(&app, charge(&number.to_string(), "{}")).await.status, 401);
        }
    }
    assert_eq!(world.calls(), 300, "each ran");
    world.clock.advance(Duration::from_secs(61));
    world.store.sweep(10_000).await.unwrap();
    let left = world.store.scan(Scan { limit: 1_000, ..Scan::default() }).await.unwrap().value.records.len();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn what_must_be_remembered_of_an_answer_that_is_not_kept_is() {
    // A failed run may have left effects; and attempts that are limited have to be counted.
    for (status, attempts_max) in [(500, None), (401, Some(3))] {
        let world = World::new();
        let layer = world.layer(ruled(|rules| rules.attempts_max = attempts_max));
        let app = world.app(&layer, move |_| async move { answer(status, "no") });
        send(&app, charge("k", "{}")).await;
        world.clock.advance(Duration::from_hours(1));
        world.store.sweep(10_000).await.unwrap();
        let page = world.store.scan(Scan { limit: 10, ..Scan::default() }).await.unwrap().value;
        let attempts: Vec<_> = page.records.iter().map(|record| record.attempt).collect();
        assert_eq!(attempts, [1], "{status}");
    }
}

#[tokio::test]
async fn a_server_error_is_held_where_the_rules_say_so() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| rules.on_server_error = OnServerError::Hold));
    let app = world.app(&layer, |_| async { answer(500, "who knows") });
    assert_eq!(send(&app, charge("k", "{}")).await.status, 500);
    let retry = send(&app, charge("k", "{}")).await;
    assert_eq!((retry.status, retry.code().as_str(), world.calls()), (409, "outcome_held", 1));
}

#[tokio::test]
async fn a_handler_that_completed_its_permit_itself_is_replayed() {
    let world = World::new();
    let app = world.app(&world.layer(Settings::default()), |request| async move {
        let permit = request.extensions().get::<semel::Permit>().expect("is there").clone();
        let reply = Reply::json(http::StatusCode::CREATED, &"charged").unwrap();
        permit.complete(reply.outcome()).await.unwrap();
        let response: Response<axum::body::Bytes> = reply.into_response();
        response.map(crate::world::whole)
    });
    let first = send(&app, charge("k", "{}")).await;
    let retry = send(&app, charge("k", "{}")).await;
    assert!(first.headers.contains_key("idempotency-expires"));
    assert_eq!((first.status, first.is_replay()), (201, false));
    assert_eq!((retry.status, retry.is_replay(), retry.body), (201, true, first.body));
    assert_eq!(world.calls(), 1);
}

#[tokio::test]
async fn a_handler_that_only_says_that_it_completed_is_not_believed() {
    let world = World::new();
    let app = world
        .app(&world.layer(Settings::default()), |_| async { saying(answer(201, "liar"), Settle::Completed) });
    let told = send(&app, charge("k", "{}")).await;
    assert_eq!((told.status, told.code().as_str()), (504, "outcome_unknown"));
}

#[tokio::test]
async fn an_outcome_that_a_person_gave_is_known_and_not_replayed() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| rules.on_server_error = OnServerError::Hold));
    let app = world.app(&layer, |_| async { answer(500, "who knows") });
    send(&app, charge("k", "{}")).await;
    let page = layer
        .semel()
        .scan(semel::store::Scan { filter: semel::store::Filter::default(), after: None, limit: 10 })
        .await
        .unwrap();
    let key = page.records.first().expect("is there").key.clone();
    let by_hand = semel::Resolution::Done(semel::Outcome::success("seen in the ledger"));
    layer.semel().resolve(&key, by_hand).await.unwrap();
    let retry = send(&app, charge("k", "{}")).await;
    assert_eq!((retry.status, retry.code().as_str(), world.calls()), (409, "outcome_not_kept", 1));
}

#[tokio::test]
async fn a_record_is_labelled_with_method_and_path_and_never_with_the_query() {
    let world = World::new();
    let app = world.app(&world.layer(Settings::default()), |_| async { answer(201, "made") });
    let long = format!("/{}", "ü".repeat(200).replace('ü', "%C3%BC"));
    for (path, label) in [
        ("/charges?card=4242", "POST /charges".to_owned()),
        (long.as_str(), format!("POST {long}").chars().take(256).collect()),
    ] {
        let mut request = charge(&format!("k-{}", path.len()), "{}");
        *request.uri_mut() = path.parse().unwrap();
        assert_eq!(send(&app, request).await.status, 201);
        let page = world.store.scan(Scan { limit: 10, ..Scan::default() }).await.unwrap().value;
        let labels: Vec<_> = page.records.iter().filter_map(|record| record.label.as_deref()).collect();
        assert!(labels.contains(&label.as_str()), "{labels:?}");
    }
}

#[tokio::test]
async fn h56_a_status_that_cannot_end_a_response_is_never_stored() {
    for said in [None, Some(Settle::Keep)] {
        let world = World::new();
        let layer = world.layer(ruled(|rules| {
            rules.lease = Duration::from_secs(10);
            rules.lapse = semel::Lapse::Rerun;
        }));
        let calls = std::sync::Arc::clone(&world.calls);
        let app = world.app(&layer, move |_| {
            let is_first = calls.load(std::sync::atomic::Ordering::SeqCst) == 1;
            async move {
                let mut response = answer(if is_first { 103 } else { 201 }, "");
                if let (Some(settle), true) = (said, is_first) {
                    response.extensions_mut().insert(settle);
                }
                response
            }
        });
        let first = send(&app, charge("k", "{}")).await;
        assert_eq!((first.status, first.code().as_str()), (500, "outcome_unknown"));
        assert_eq!(send(&app, charge("k", "{}")).await.code(), "in_flight");
        world.clock.advance(Duration::from_secs(11));
        let third = send(&app, charge("k", "{}")).await;
        assert_eq!((third.status, third.is_replay(), world.calls()), (201, false, 2));
        assert_eq!(layer.running(), 0);
    }
}

#[tokio::test]
async fn h56_a_reply_whose_status_cannot_end_a_response_is_not_kept() {
    let world = World::new();
    let app = world.app(&world.layer(Settings::default()), |request| async move {
        let permit = request.extensions().get::<semel::Permit>().expect("is there").clone();
        let reply = Reply::new(http::StatusCode::PROCESSING, "half of it");
        permit.complete(reply.outcome()).await.unwrap();
        let response: Response<axum::body::Bytes> = reply.into_response();
        response.map(crate::world::whole)
    });
    send(&app, charge("k", "{}")).await;
    let retry = send(&app, charge("k", "{}")).await;
    assert_eq!((retry.status, retry.code().as_str(), world.calls()), (409, "outcome_not_kept", 1));
}
