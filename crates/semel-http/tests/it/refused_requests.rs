//! What a client hears of a request that is refused, and what becomes of the rest of it.

use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Version};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody};
use semel::Lapse;
use semel_http::{Code, Decided, KeyPresence, Probe, ProbeAnswer, Reply, RequestBody, Settings, Settle};
use tokio::time::{Instant, sleep};
use tower::{BoxError, Layer, ServiceExt, service_fn};

use crate::world::{Body, Told, World, answer, charge, read, ruled, send};

const BOUND: usize = 8;

/// A body in parts, and then its end, or nothing for ever.
fn body(parts: Vec<Result<&'static str, BoxError>>, ends: bool) -> Body {
    let parts =
        parts.into_iter().map(|part| part.map(|text| Frame::data(Bytes::from_static(text.as_bytes()))));
    let parts = futures_util::stream::iter(parts);
    let rest = futures_util::stream::once(async move {
        if !ends {
            pending::<()>().await;
        }
        Ok(Frame::data(Bytes::new()))
    });
    StreamBody::new(futures_util::StreamExt::chain(parts, rest)).boxed_unsync()
}

/// Sends a request that no key can be read from, with this body.
async fn refused(body: Body, version: Version) -> (Told, Duration) {
    let world = World::new();
    let layer = world.layer(ruled(|rules| rules.request_bytes_max = BOUND));
    let app = layer.layer(service_fn(|_: Request<RequestBody<Body>>| async {
        Err::<Response<Body>, BoxError>("a refused request was passed on".into())
    }));
    let mut request = charge("", "").map(|_| body);
    *request.version_mut() = version;
    let started_at = Instant::now();
    let told = read(app.oneshot(request).await.unwrap()).await;
    assert_eq!((told.status, told.code().as_str()), (400, "key_malformed"));
    (told, started_at.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_read_to_its_end_or_its_connection_is_closed() {
    let empty = Empty::new().map_err(BoxError::from).boxed_unsync();
    for (what, body, closes, took) in [
        ("no body", empty, false, 0),
        ("a short one", body(vec![Ok("12")], true), false, 0),
        ("one of just the bound", body(vec![Ok("1234"), Ok("5678")], true), false, 0),
        ("one byte more", body(vec![Ok("1234"), Ok("56789")], true), true, 0),
        ("one that breaks off", body(vec![Ok("12"), Err("gone".into())], true), true, 0),
        ("one that does not end", body(vec![Ok("12")], false), true, 1),
    ] {
        let (told, elapsed) = refused(body, Version::HTTP_11).await;
        assert_eq!(told.headers.get("connection").is_some_and(|value| value == "close"), closes, "{what}");
        assert_eq!(elapsed, Duration::from_secs(took), "{what}");
    }
    let (told, _) = refused(body(vec![Ok("12")], false), Version::HTTP_2).await;
    assert!(!told.headers.contains_key("connection"), "HTTP/2 has no such header");
}

#[tokio::test]
async fn a_refusal_is_a_problem_that_no_cache_keeps() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| rules.key = KeyPresence::Required));
    let app = world.app(&layer, |_| async { answer(201, "made") });
    let mut keyless = charge("k", "{}");
    keyless.headers_mut().remove("idempotency-key");
    let told = send(&app, keyless).await;
    assert_eq!((told.status, told.code().as_str(), world.calls()), (400, "key_missing", 0));
    assert_eq!(told.headers["content-type"], "application/problem+json");
    assert_eq!(told.headers["cache-control"], "no-store");
    let problem: serde_json::Value = serde_json::from_slice(&told.body).unwrap();
    assert_eq!(
        (&problem["status"], &problem["type"]),
        (&400.into(), &"urn:semel:problem:key_missing".into())
    );
}

#[tokio::test]
async fn what_is_not_covered_passes_without_a_decision() {
    let world = World::new();
    let app = world.app(&world.layer(Settings::default()), |request| async move {
        assert!(request.extensions().get::<semel::Permit>().is_none());
        answer(500, "its own")
    });
    let mut keyless = charge("k", "{}");
    keyless.headers_mut().remove("idempotency-key");
    let mut read_only = charge("k", "{}");
    *read_only.method_mut() = http::Method::GET;
    for request in [keyless, read_only] {
        let response = app.clone().oneshot(request).await.unwrap();
        assert!(response.extensions().get::<Decided>().is_none());
        let told = read(response).await;
        assert_eq!((told.status, told.text().as_str()), (500, "its own"));
        assert!(!told.headers.contains_key("idempotency-expires"));
    }
    assert_eq!(world.calls(), 2);
}

/// Sends two requests with one key; the second after the first has run for this long.
async fn told_after(ran_for: Duration, settle: Option<Settle>) -> (u64, u64, Option<String>) {
    let world = World::new();
    let layer = world.layer(ruled(|rules| {
        rules.lease = Duration::from_mins(1);
        rules.lapse = Lapse::Hold;
    }));
    let app = world.app(&layer, move |_| async move {
        let Some(settle) = settle else { return pending().await };
        let mut response = answer(200, "perhaps");
        response.extensions_mut().insert(settle);
        response
    });
    let first = tokio::spawn(app.clone().oneshot(charge("k", "{}")));
    while world.calls() == 0 {
        tokio::task::yield_now().await;
    }
    if settle.is_some() {
        first.await.unwrap().unwrap();
    }
    world.clock.advance(ran_for);
    let told = send(&app, charge("k", "{}")).await;
    assert_eq!((told.status, told.code().as_str()), (409, "in_flight"));
    let problem: serde_json::Value = serde_json::from_slice(&told.body).unwrap();
    let retry_after = told.headers["retry-after"].to_str().unwrap().parse().unwrap();
    let outcome = problem["outcome"].as_str().map(str::to_owned);
    (retry_after, problem["lease_left_ms"].as_u64().unwrap(), outcome)
}

#[tokio::test]
async fn a_retry_is_worth_it_after_as_long_again_as_the_run_has_taken_but_never_after_its_lease() {
    for (ran_for, retry_after) in [(0, 1), (5, 5), (20, 20), (30, 30), (50, 10), (59, 1)] {
        let told = told_after(Duration::from_secs(ran_for), None).await;
        assert_eq!(told, (retry_after, (60 - ran_for) * 1_000, None), "{ran_for}");
    }
    for ran_for in [0, 20, 59] {
        let told = told_after(Duration::from_secs(ran_for), Some(Settle::Unknown)).await;
        let unknown = Some("unknown".to_owned());
        assert_eq!(told, (60 - ran_for, (60 - ran_for) * 1_000, unknown), "{ran_for}");
    }
}

#[tokio::test]
async fn a_response_that_streams_is_passed_on_and_not_kept() {
    for (media_type, streams) in [
        ("text/event-stream", true),
        ("Text/Event-Stream; charset=utf-8", true),
        (" text/event-stream ;q=1", true),
        ("text/event-streams", false),
        ("text/plain; a=text/event-stream", false),
    ] {
        let world = World::new();
        let app = world.app(&world.layer(Settings::default()), move |_| async move {
            let mut response = answer(200, "data: 1\n\n");
            response.headers_mut().insert("content-type", media_type.parse().unwrap());
            response
        });
        assert_eq!(send(&app, charge("k", "{}")).await.text(), "data: 1\n\n");
        let retry = send(&app, charge("k", "{}")).await;
        assert_eq!((retry.is_replay(), retry.status == 409), (!streams, streams), "{media_type}");
        assert_eq!(world.calls(), 1, "{media_type}");
    }
}

#[tokio::test]
async fn names_and_statuses_of_a_profile_are_those_that_clients_see() {
    let world = World::new();
    let mut settings = Settings::default();
    let names = &mut settings.profile.names;
    names.key = "x-key".parse().unwrap();
    names.key_aliases = vec!["x-other-key".parse().unwrap()];
    names.replayed = "x-again".parse().unwrap();
    names.expires = Some("x-until".parse().unwrap());
    let statuses = settings.profile.statuses.clone();
    settings.profile.statuses = statuses.with(Code::Mismatch, StatusCode::IM_A_TEAPOT);
    settings.profile.problem_base = "https://errors.example/".into();
    let app = world.app(&world.layer(settings), |_| async { answer(201, "made") });
    let keyed = |name: &'static str, body: &str| {
        let mut request = charge("ignored", body);
        request.headers_mut().remove("idempotency-key");
        request.headers_mut().insert(name, "k".parse().unwrap());
        request
    };
    let first = send(&app, keyed("x-key", "{}")).await;
    let again = send(&app, keyed("x-other-key", "{}")).await;
    assert_eq!((first.status, again.status, world.calls()), (201, 201, 1));
    assert!(!first.headers.contains_key("x-again") && again.headers["x-again"] == "true");
    assert!(again.headers.contains_key("x-until") && first.headers["x-until"] == again.headers["x-until"]);
    let other = send(&app, keyed("x-key", "{\"other\":1}")).await;
    assert_eq!((other.status, other.code().as_str()), (418, "mismatch"));
    assert!(other.text().contains("https://errors.example/mismatch"), "{}", other.text());
    send(&app, charge("k", "{}")).await;
    assert_eq!(world.calls(), 2, "the usual name says nothing here");
}

#[tokio::test]
async fn only_the_headers_that_the_rules_name_are_kept_and_the_first_client_sees_all() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| rules.headers_kept = Some(vec!["location".parse().unwrap()])));
    let app = world.app(&layer, |_| async {
        let mut response = answer(201, "made");
        for (name, value) in [("location", "/charges/7"), ("x-trace", "1")] {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        response
    });
    for is_replay in [false, true] {
        let told = send(&app, charge("k", "{}")).await;
        assert_eq!((told.is_replay(), told.headers.contains_key("x-trace")), (is_replay, !is_replay));
        assert_eq!(told.headers["location"], "/charges/7");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_probe_finds_has_the_bounds_of_a_first_response() {
    for (status, text, expected) in [
        (201, "1234", "replay"),
        (201, "12345", "outcome_not_kept"),
        (404, "1234", "replay"),
        (103, "", "outcome_held"),
    ] {
        let world = World::new();
        let reply = Reply::new(StatusCode::from_u16(status).unwrap(), text).header("x-trace", "1").unwrap();
        let probe = Probe::new(move |request| {
            assert_eq!(request.attempt, 1);
            let reply = reply.clone();
            // Longer than the store may take: a probe has its own time.
            async move {
                sleep(Duration::from_secs(4)).await;
                ProbeAnswer::Landed(reply)
            }
        });
        let mut settings = ruled(|rules| {
            rules.probe = Some(probe);
            rules.lapse = Lapse::Rerun;
            rules.response_bytes_max = 4;
            rules.headers_kept = Some(Vec::new());
        });
        settings.store_timeout = Duration::from_secs(2);
        let app = world.app(&world.layer(settings), |_| async {
            let mut response = answer(200, "ran");
            response.extensions_mut().insert(Settle::Unknown);
            response
        });
        send(&app, charge("k", "{}")).await;
        world.clock.advance(Duration::from_mins(2));
        let told = send(&app, charge("k", "{}")).await;
        let found = if told.is_replay() { "replay".to_owned() } else { told.code() };
        assert_eq!((found.as_str(), world.calls()), (expected, 1), "{status} {text}");
        assert!(!told.headers.contains_key("x-trace"), "{status} {text}");
    }
}

#[tokio::test]
async fn runs_and_the_room_of_their_bodies_are_known_until_they_end_also_after_a_reload() {
    let world = World::new();
    let layer = world.layer(Settings::default());
    let gate = std::sync::Arc::new(tokio::sync::Notify::new());
    let opened = std::sync::Arc::clone(&gate);
    let app = world.app(&layer, move |request| {
        let gate = std::sync::Arc::clone(&opened);
        async move {
            gate.notified().await;
            let body = request.into_body().collect().await.unwrap().to_bytes();
            answer(201, &body.len().to_string())
        }
    });
    let first = tokio::spawn(app.clone().oneshot(charge("k", &format!("\"{}\"", "x".repeat(100_000)))));
    while world.calls() == 0 {
        tokio::task::yield_now().await;
    }
    let principal = semel_http::Principal::header("authorization");
    let reloaded = layer.reloaded(principal, Settings::default()).unwrap();
    for of in [&layer, &reloaded] {
        assert_eq!(of.running(), 1);
        assert!(of.held_bytes() >= 100_002, "{}", of.held_bytes());
    }
    gate.notify_one();
    assert_eq!(read(first.await.unwrap().unwrap()).await.text(), "100002");
    reloaded.none_running().await;
    assert_eq!((layer.running(), reloaded.running(), layer.held_bytes()), (0, 0, 0));
}
