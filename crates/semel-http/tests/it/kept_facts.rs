//! Facts that a record or a refusal must get right, and that no answer alone shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use semel::store::Scan;
use semel::{OnOutage, OutcomeKind};
use semel_http::{
    Hosts, KeyIdentity, OnServerError, Probe, ProbeAnswer, Quotas, RequestBody, Settings, Settle,
};
use semel_testkit::{Call, Fault, FaultyStore};
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

use crate::world::{Body, World, answer, charge, read, ruled, send};

#[tokio::test]
async fn a_stored_answer_is_a_success_below_400_and_a_failure_from_there_on() {
    for (status, kind) in [
        (200, OutcomeKind::Success),
        (303, OutcomeKind::Success),
        (399, OutcomeKind::Success),
        (400, OutcomeKind::Failure),
        (404, OutcomeKind::Failure),
        (499, OutcomeKind::Failure),
        (500, OutcomeKind::Failure),
    ] {
        let world = World::new();
        let layer = world.layer(ruled(|rules| rules.on_server_error = OnServerError::Store));
        let app = world.app(&layer, move |_| async move { answer(status, "said") });
        send(&app, charge("k", "{}")).await;
        let page = world.store.scan(Scan { limit: 10, ..Scan::default() }).await.unwrap().value;
        let kinds: Vec<_> =
            page.records.iter().filter_map(|record| record.outcome()).map(semel::Outcome::kind).collect();
        assert_eq!(kinds, [&kind], "{status}");
    }
}

#[tokio::test]
async fn an_upgrade_takes_no_record_for_absent_that_it_could_not_read() {
    // A store that is away may mean "run", where the rules say so. One that failed otherwise may hold the record.
    for (fault, policy, status, calls) in [
        (Fault::Refuse, OnOutage::Open, 201, 1),
        (Fault::Refuse, OnOutage::Closed, 503, 0),
        (Fault::LoseReply(Duration::ZERO), OnOutage::Open, 503, 0),
        (Fault::LoseReply(Duration::ZERO), OnOutage::Closed, 503, 0),
    ] {
        let world = World::new();
        let choose = move |call| if call == Call::Load { fault } else { Fault::None };
        let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), choose));
        let mut settings = ruled(|rules| rules.on_outage = policy);
        settings.key_identity = KeyIdentity::Upgrade;
        settings.hosts = Hosts::separate();
        let app = world.app(&World::layer_on(store, settings), |_| async { answer(201, "ran") });
        let told = send(&app, charge("k", "{}")).await;
        assert_eq!((told.status, world.calls()), (status, calls), "{fault:?}, {policy:?}");
    }
}

#[tokio::test]
async fn a_request_that_is_refused_half_read_closes_its_connection() {
    let part = |text: &'static str| Ok::<_, BoxError>(Frame::data(Bytes::from_static(text.as_bytes())));
    for (held_bytes_max, parts, code) in [
        (6, vec![part("1234"), part("5678")], "overloaded"),
        (1 << 20, vec![part("1234567890"), part("1234567890")], "body_too_large"),
        (1 << 20, vec![part("1234"), Err("gone".into())], "body_incomplete"),
    ] {
        let world = World::new();
        let mut settings = ruled(|rules| rules.request_bytes_max = 16);
        settings.held_bytes_max = held_bytes_max;
        let layer = world.layer(settings);
        let app = layer.layer(service_fn(|_: Request<RequestBody<Body>>| async {
            Err::<Response<Body>, BoxError>("a refused request was passed on".into())
        }));
        let body = StreamBody::new(futures_util::stream::iter(parts)).boxed_unsync();
        let told = read(app.oneshot(charge("k", "").map(|_| body)).await.unwrap()).await;
        assert_eq!(told.code(), code);
        assert_eq!(told.headers["connection"], "close", "{code}");
        assert_eq!(layer.held_bytes(), 0, "{code}");
    }
}

#[tokio::test]
async fn whatever_a_handler_says_of_a_run_without_protection_its_answer_reaches_the_client() {
    for settle in [Settle::Keep, Settle::Completed, Settle::Release, Settle::Hold, Settle::Unknown] {
        let world = World::new();
        let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), |_| Fault::Refuse));
        let layer = World::layer_on(store, ruled(|rules| rules.on_outage = OnOutage::Open));
        let app = world.app(&layer, move |_| async move {
            let mut response = answer(200, "ran");
            response.extensions_mut().insert(settle);
            response
        });
        let told = send(&app, charge("k", "{}")).await;
        assert_eq!((told.status, told.text().as_str()), (200, "ran"), "{settle:?}");
        assert_eq!(told.headers["idempotency-protected"], "false", "{settle:?}");
    }
}

#[tokio::test]
async fn a_run_that_left_steps_behind_still_counts_as_a_record_when_it_is_given_back() {
    for (has_steps, is_over) in [(false, false), (true, true)] {
        let world = World::new();
        let quotas = Quotas { records: Some(1), ..Quotas::default() };
        let layer = world.layer(Settings { quotas: Some(quotas), ..Settings::default() });
        let app = world.app(&layer, move |request| async move {
            let permit = request.extensions().get::<semel::Permit>().expect("is there").clone();
            if has_steps {
                permit.step("reserve", async || Ok::<_, String>(7)).await.unwrap();
            }
            answer(401, "who are you?")
        });
        assert_eq!(send(&app, charge("k", "{}")).await.status, 401);
        assert_eq!(send(&app, charge("other", "{}")).await.status == 429, is_over, "{has_steps}");
        let page = world.store.scan(Scan { limit: 10, ..Scan::default() }).await.unwrap().value;
        let with_steps = page.records.iter().filter(|record| record.attempt > 0).count();
        assert_eq!(with_steps, usize::from(has_steps));
    }
}

#[tokio::test]
async fn a_held_key_says_when_to_come_back_only_where_a_probe_may_know_more_by_then() {
    let probe = || Some(Probe::new(|_| async { ProbeAnswer::CannotTell }));
    for (probe, attempts_max, expected) in
        [(None, None, None), (probe(), None, Some("10")), (None, Some(1), None), (probe(), Some(1), None)]
    {
        let world = World::new();
        let has_probe = probe.is_some();
        let layer = world.layer(ruled(|rules| {
            rules.probe = probe;
            rules.attempts_max = attempts_max;
            rules.on_server_error =
                if attempts_max.is_some() { OnServerError::Release } else { OnServerError::Hold };
        }));
        let app = world.app(&layer, |_| async { answer(500, "no") });
        send(&app, charge("k", "{}")).await;
        let told = send(&app, charge("k", "{}")).await;
        assert_eq!((told.status, told.code().as_str(), world.calls()), (409, "outcome_held", 1));
        let retry_after = told.headers.get("retry-after").map(|value| value.to_str().unwrap());
        assert_eq!(retry_after, expected, "probe: {has_probe}, {attempts_max:?}");
    }
}

/// A service of which only the one that was asked may be called, as with a limit that gives out permits.
struct ReadyOnce {
    is_ready: bool,
    called_unready: Arc<AtomicUsize>,
}

impl Clone for ReadyOnce {
    fn clone(&self) -> Self {
        Self { is_ready: false, called_unready: Arc::clone(&self.called_unready) }
    }
}

impl Service<Request<RequestBody<Full<Bytes>>>> for ReadyOnce {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = std::future::Ready<Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<RequestBody<Full<Bytes>>>) -> Self::Future {
        self.called_unready.fetch_add(usize::from(!self.is_ready), Ordering::SeqCst);
        self.is_ready = false;
        std::future::ready(Ok(answer(201, "made")))
    }
}

#[tokio::test]
async fn the_service_that_was_ready_is_the_one_that_is_called() {
    let world = World::new();
    let layer = world.layer(Settings::default());
    let called_unready = Arc::new(AtomicUsize::new(0));
    let mut app = layer.layer(ReadyOnce { is_ready: false, called_unready: Arc::clone(&called_unready) });
    let mut keyless = charge("k", "{}");
    keyless.headers_mut().remove("idempotency-key");
    for request in [keyless, charge("a", "{}"), charge("b", "{}")] {
        let response =
            ServiceExt::<Request<Full<Bytes>>>::ready(&mut app).await.unwrap().call(request).await.unwrap();
        assert_eq!(response.status(), 201);
    }
    assert_eq!(called_unready.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn names_of_a_key_must_agree_also_among_those_that_are_not_the_first() {
    let world = World::new();
    let mut settings = Settings::default();
    settings.profile.names.key_aliases = ["x-one", "x-two"].map(|name| name.parse().unwrap()).into();
    let app = world.app(&world.layer(settings), |_| async { answer(201, "made") });
    for (one, two, status) in [("a", "b", 400), ("a", "a", 201), ("a", " ", 400)] {
        let mut request = charge("k", "{}");
        request.headers_mut().remove("idempotency-key");
        request.headers_mut().insert("x-one", one.parse().unwrap());
        request.headers_mut().insert("x-two", two.parse().unwrap());
        assert_eq!(send(&app, request).await.status, status, "{one:?}, {two:?}");
    }
}
