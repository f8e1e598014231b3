//! The permit in axum's handlers.

use axum::Router;
use axum::routing::post;
use http::{Request, StatusCode};
use semel::Semel;
use semel::store::MemoryStore;
use semel_http::{Granted, IdempotencyLayer, Principal};
use tower::ServiceExt;

fn app() -> Router {
    let layer = IdempotencyLayer::new(Semel::new(MemoryStore::new()), Principal::shared());
    let needs = |Granted(permit): Granted| async move {
        let charged: String =
            permit.step("charge", || async { Ok::<_, String>("ch_1".into()) }).await.unwrap();
        format!("{charged} {} {} {}", permit.attempt(), permit.fence() > 0, permit.derive("card").len())
    };
    let may = |granted: Option<Granted>| async move { granted.is_some().to_string() };
    Router::new().route("/needs", post(needs)).route("/may", post(may)).layer(layer)
}

async fn sent(path: &str, key: Option<&str>) -> (StatusCode, String) {
    let mut request = Request::post(path);
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let response = app().oneshot(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
    let status = response.status();
    let bytes = axum::body::to_bytes(response.into_body(), 1_024).await.unwrap();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn a_handler_gets_attempt_fence_steps_and_keys_for_others() {
    assert_eq!(sent("/needs", Some("k")).await, (StatusCode::OK, "ch_1 1 true 64".to_owned()));
}

#[tokio::test]
async fn a_handler_that_wants_a_permit_is_not_called_without_one() {
    let (status, said) = sent("/needs", None).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(said.contains("Option<Granted>"), "{said}");
}

#[tokio::test]
async fn a_handler_that_may_have_a_permit_is_called_with_and_without() {
    assert_eq!(sent("/may", Some("k")).await.1, "true");
    assert_eq!(sent("/may", None).await.1, "false");
}
