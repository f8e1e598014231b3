//! Rate limits and bounds on concurrency: outside they count every request, inside only those that run.

use std::time::Duration;

use axum::BoxError;
use axum::error_handling::HandleErrorLayer;
use http::StatusCode;
use test_http::{Client, soon};
use tower::ServiceBuilder;

use super::shop::{Shop, ask, assert_promises, assert_same_answer, charge_to, layer};

/// Longer than a test.
const HOUR: Duration = Duration::from_hours(1);

async fn too_many(_: BoxError) -> (StatusCode, &'static str) {
    (StatusCode::TOO_MANY_REQUESTS, "too many requests; ask again later")
}

/// `tower`'s rate limit as a layer for axum: so many requests an hour, and 429 for those beyond.
macro_rules! limited {
    ($requests:expr) => {
        ServiceBuilder::new()
            .layer(HandleErrorLayer::new(too_many))
            .buffer(64)
            .load_shed()
            .rate_limit($requests, HOUR)
    };
}

#[tokio::test]
async fn outside_replays_count_and_what_is_refused_claims_nothing() {
    let shop = Shop::new();
    let at = shop.serve(shop.routes().layer(layer()).layer(limited!(2))).await;
    let first = ask(at, &charge_to("/charges", "k")).await;
    first.ran(201);
    assert_same_answer(&ask(at, &charge_to("/charges", "k")).await, &first);
    ask(at, &charge_to("/charges", "k")).await.ran(429);
    ask(at, &charge_to("/charges", "new")).await.ran(429);
    assert_eq!(shop.charges(), 1);
}

#[tokio::test]
async fn inside_replays_are_free_and_a_429_is_not_kept() {
    let shop = Shop::new();
    let at = shop.serve(shop.routes().layer(limited!(1)).layer(layer())).await;
    let first = ask(at, &charge_to("/charges", "k")).await;
    first.ran(201);
    for _ in 0..5 {
        assert_same_answer(&ask(at, &charge_to("/charges", "k")).await, &first);
    }
    for _ in 0..2 {
        // Twice refused by the limit, and never by the layer: the key is free again.
        ask(at, &charge_to("/charges", "new")).await.ran(429);
    }
    assert_eq!(shop.charges(), 1);
}

#[tokio::test]
async fn promises_hold_on_both_sides_of_a_rate_limit() {
    for is_outside in [true, false] {
        let shop = Shop::new();
        let routes = shop.routes();
        let app = if is_outside {
            routes.layer(layer()).layer(limited!(100))
        } else {
            routes.layer(limited!(100)).layer(layer())
        };
        assert_promises(shop.serve(app).await, "/charges", &shop).await;
    }
}

#[tokio::test]
async fn a_run_whose_client_left_still_holds_its_place_under_a_limit_inside() {
    let (shop, layer) = (Shop::new(), layer());
    let one_at_a_time =
        ServiceBuilder::new().layer(HandleErrorLayer::new(too_many)).load_shed().concurrency_limit(1);
    let at = shop.serve(shop.routes().layer(one_at_a_time).layer(layer.clone())).await;
    let mut client = Client::connect(at).await;
    client.write(charge_to("/slow", "k").bytes()).await;
    shop.slow_charge_began().await;
    client.reset();
    shop.request_dropped().await;
    ask(at, &charge_to("/slow", "other")).await.ran(429);
    shop.let_one_end();
    soon("the run to end", layer.none_running()).await;
    assert!(ask(at, &charge_to("/slow", "k")).await.is_replay());
    assert_eq!(shop.charges(), 1);
    assert_promises(at, "/charges", &shop).await;
}
