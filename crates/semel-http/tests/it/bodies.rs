//! Bodies: of any length, in any number of parts, with trailers.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use semel_http::{RequestBody, Settings};
use tower::{BoxError, Layer, ServiceExt, service_fn};

use crate::world::{Body, World, answer, charge, read, ruled, send};

/// A body in parts, whose length nobody knows beforehand.
fn parts(frames: Vec<Result<Frame<Bytes>, BoxError>>) -> Body {
    StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()
}

#[expect(clippy::unnecessary_wraps, reason = "a part of a body may also be an error")]
fn data(text: &str) -> Result<Frame<Bytes>, BoxError> {
    Ok(Frame::data(Bytes::from(text.to_owned())))
}

#[tokio::test]
async fn trailers_are_kept_with_their_body() {
    let world = World::new();
    let app = world.app(&world.layer(Settings::default()), |_| async {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        Response::new(parts(vec![data("a"), data("bc"), Ok(Frame::trailers(trailers))]))
    });
    for is_replay in [false, true] {
        let told = send(&app, charge("k", "{}")).await;
        assert_eq!((&*told.body, told.is_replay()), (&b"abc"[..], is_replay));
        assert_eq!(told.trailers.unwrap()["grpc-status"], "0");
    }
}

#[tokio::test]
async fn a_body_over_the_bound_reaches_the_first_client_and_runs_once() {
    for known in [true, false] {
        let world = World::new();
        let layer = world.layer(ruled(|rules| rules.response_bytes_max = 4));
        let app = world.app(&layer, move |_| async move {
            if known { answer(200, "abcdef") } else { Response::new(parts(vec![data("abc"), data("def")])) }
        });
        assert_eq!(&*send(&app, charge("k", "{}")).await.body, b"abcdef");
        let retry = send(&app, charge("k", "{}")).await;
        assert_eq!((retry.status, retry.code().as_str(), world.calls()), (409, "outcome_not_kept", 1));
        let problem: serde_json::Value = serde_json::from_slice(&retry.body).unwrap();
        assert_eq!(problem["original_status"], 200);
    }
}

#[tokio::test]
async fn a_body_of_just_the_bound_is_kept() {
    let world = World::new();
    let app = world.app(&world.layer(ruled(|rules| rules.response_bytes_max = 6)), |_| async {
        Response::new(parts(vec![data("abc"), data("def")]))
    });
    send(&app, charge("k", "{}")).await;
    assert!(send(&app, charge("k", "{}")).await.is_replay());
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_kept_and_told_as_unknown() {
    let world = World::new();
    let app = world.app(&world.layer(Settings::default()), |_| async {
        Response::new(parts(vec![data("abc"), Err("cable out".into())]))
    });
    let told = send(&app, charge("k", "{}")).await;
    assert_eq!((told.status, told.code().as_str()), (504, "outcome_unknown"));
    assert_eq!(send(&app, charge("k", "{}")).await.code(), "in_flight");
}

#[tokio::test]
async fn a_request_over_the_bound_is_refused_and_nothing_is_claimed() {
    let world = World::new();
    let layer = world.layer(ruled(|rules| rules.request_bytes_max = 4));
    let app = world.app(&layer, |_| async { answer(201, "charged") });
    let told = send(&app, charge("k", "12345")).await;
    assert_eq!((told.status, told.code().as_str(), world.calls()), (413, "body_too_large", 0));
    assert_eq!(told.headers["connection"], "close");
    assert_eq!(send(&app, charge("k", "1234")).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_only_trickles_is_given_up_in_time_and_nothing_is_claimed() {
    let world = World::new();
    let settings = Settings { body_timeout: Duration::from_secs(9), ..Settings::default() };
    let layer = world.layer(settings);
    let app = world.app(&layer, |_| async { answer(200, "done") });
    let never = layer.layer(service_fn(|_: Request<RequestBody<Body>>| async {
        Err::<Response<Body>, BoxError>("a request without its body was passed on".into())
    }));
    let trickle = futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Some((data("1"), ()))
    });
    let endless = charge("k", "").map(|_| StreamBody::new(trickle).boxed_unsync());
    let told = read(never.oneshot(endless).await.unwrap()).await;
    assert_eq!((told.status, told.code().as_str()), (400, "body_incomplete"));
    assert_eq!(send(&app, charge("k", "{}")).await.status, 200);
}

#[tokio::test]
async fn bodies_beyond_the_room_for_them_are_refused_and_the_room_comes_back() {
    let world = World::new();
    let layer = world.layer(Settings { held_bytes_max: 10, ..Settings::default() });
    let app = world.app(&layer, |_| async { answer(201, "ok") });
    let told = send(&app, charge("k", "12345678901")).await;
    assert_eq!((told.status, told.code().as_str(), world.calls()), (503, "overloaded", 0));
    for n in 0..5 {
        assert_eq!(send(&app, charge(&format!("k{n}"), "1234567")).await.status, 201);
    }
}

#[tokio::test]
async fn a_response_that_there_is_no_room_for_passes_and_is_known_to_have_been_there() {
    for known in [true, false] {
        let world = World::new();
        let layer = world.layer(Settings { held_bytes_max: 5, ..Settings::default() });
        let app = world.app(&layer, move |_| async move {
            if known { answer(201, "abcdef") } else { Response::new(parts(vec![data("abc"), data("def")])) }
        });
        assert_eq!(&*send(&app, charge("k", "{}")).await.body, b"abcdef");
        let retry = send(&app, charge("k", "{}")).await;
        assert_eq!((retry.status, retry.code().as_str(), world.calls()), (409, "outcome_not_kept", 1));
    }
}
