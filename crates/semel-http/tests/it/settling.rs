//! What becomes of a response: by its status, by the rules, and by what its handler says.

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
    let by_hand = semel::Resolution::Done(semel::Outcome::success(*b"seen in the ledger"));
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
