//! Timeouts: outside of the layer they end the waiting, inside they end the work.

use std::time::Duration;

use axum::error_handling::HandleErrorLayer;
use axum::{BoxError, Router};
use http::StatusCode;
use semel_http::{IdempotencyLayer, OnServerError, Settings};
use test_http::soon;
use tower::ServiceBuilder;
use tower_http::timeout::TimeoutLayer;

use super::shop::{Shop, ask, assert_promises, charge_to, layer, layer_with};

/// Long enough for an answer that is ready, on a busy machine too.
const SPAN: Duration = Duration::from_secs(2);

/// A slow charge runs into a timeout that is outside of the layer: the client gets `status`, and its retry the answer.
async fn times_out_and_replays(app: Router, shop: &Shop, layer: &IdempotencyLayer, status: u16) {
    let at = shop.serve(app).await;
    let request = charge_to("/slow", "k");
    ask(at, &request).await.ran(status);
    shop.slow_charge_began().await;
    assert_eq!((shop.charges(), layer.running()), (1, 1), "the run goes on without its client");
    ask(at, &request).await.refused(409, "in_flight");
    shop.let_one_end();
    soon("the run to end", layer.none_running()).await;
    let replay = ask(at, &request).await;
    assert!(replay.is_replay() && replay.status == 201, "{replay:?}");
    assert_eq!(shop.charges(), 1);
    assert_promises(at, "/charges", shop).await;
}

#[tokio::test]
async fn a_timeout_outside_answers_the_client_while_the_run_goes_on() {
    for status in [StatusCode::REQUEST_TIMEOUT, StatusCode::GATEWAY_TIMEOUT] {
        let (shop, layer) = (Shop::new(), layer());
        let app = shop.routes().layer(layer.clone()).layer(TimeoutLayer::with_status_code(status, SPAN));
        times_out_and_replays(app, &shop, &layer, status.as_u16()).await;
    }
}

/// tower's own timeout is an error, which axum wants to have as a response: `HandleErrorLayer` is outside of it.
#[tokio::test]
async fn a_timeout_of_tower_outside_works_the_same_with_its_error_handled() {
    let (shop, layer) = (Shop::new(), layer());
    let too_slow = |_: BoxError| async { (StatusCode::GATEWAY_TIMEOUT, "not answered in time; ask again") };
    let layers =
        ServiceBuilder::new().layer(HandleErrorLayer::new(too_slow)).timeout(SPAN).layer(layer.clone());
    times_out_and_replays(shop.routes().layer(layers), &shop, &layer, 504).await;
}

/// A slow charge runs into a timeout that is inside of the layer; what a retry with the same key gets.
async fn retried_after_a_timeout_inside(
    status: StatusCode,
    settings: Settings,
) -> (test_http::Answer, usize) {
    let shop = Shop::new();
    let timeout = TimeoutLayer::with_status_code(status, Duration::from_millis(100));
    let app = shop.routes().layer(timeout).layer(layer_with(settings));
    let at = shop.serve(app).await;
    ask(at, &charge_to("/slow", "k")).await.ran(status.as_u16());
    let retry = ask(at, &charge_to("/slow", "k")).await;
    (retry, shop.charges())
}

/// The wrong order: the handler is cancelled after its effect, 408 is not kept, and the retry charges again.
#[tokio::test]
async fn a_timeout_inside_cancels_the_handler_and_the_retry_runs_again() {
    let (retry, charges) =
        retried_after_a_timeout_inside(StatusCode::REQUEST_TIMEOUT, Settings::default()).await;
    retry.ran(408);
    assert_eq!(charges, 2, "inside, a timeout cannot know whether the card was charged");
}

#[tokio::test]
async fn a_timeout_inside_that_is_held_does_not_run_again() {
    let mut settings = Settings::default();
    settings.profile.rules.on_server_error = OnServerError::Hold;
    let (retry, charges) = retried_after_a_timeout_inside(StatusCode::GATEWAY_TIMEOUT, settings).await;
    retry.refused(409, "outcome_held");
    assert_eq!(charges, 1);
}
