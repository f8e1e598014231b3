//! Bounds on bodies, outside and inside: a request that is refused claims nothing, and its key stays free.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use test_http::Client;
use tower_http::limit::RequestBodyLimitLayer;

use super::shop::{Shop, ask, assert_outlives_a_hang_up, assert_promises, charge_to, layer};

const BYTES_MAX: usize = 100;

/// A body over the bound is 413 however often it comes, and the key is still free for a shorter one.
async fn too_long_and_then_short(app: impl FnOnce(Router) -> Router) {
    let shop = Shop::new();
    let at = shop.serve(app(shop.routes())).await;
    for _ in 0..2 {
        ask(at, &charge_to("/charges", "k").body("a".repeat(BYTES_MAX + 1))).await.ran(413);
    }
    ask(at, &charge_to("/charges", "k")).await.ran(201);
    assert_eq!(shop.charges(), 1);
    assert_promises(at, "/charges", &shop).await;
}

#[tokio::test]
async fn a_body_over_a_bound_outside_or_inside_leaves_its_key_free() {
    too_long_and_then_short(|app| app.layer(layer()).layer(RequestBodyLimitLayer::new(BYTES_MAX))).await;
    too_long_and_then_short(|app| app.layer(RequestBodyLimitLayer::new(BYTES_MAX)).layer(layer())).await;
    too_long_and_then_short(|app| app.layer(DefaultBodyLimit::max(BYTES_MAX)).layer(layer())).await;
    too_long_and_then_short(|app| app.layer(layer()).layer(DefaultBodyLimit::max(BYTES_MAX))).await;
}

/// The bound outside cuts the body, and the layer sees that it broke off: 400 instead of 413.
#[tokio::test]
async fn a_body_without_a_length_that_is_cut_outside_claims_nothing() {
    let (shop, layer) = (Shop::new(), layer());
    let app = shop.routes().layer(layer.clone()).layer(RequestBodyLimitLayer::new(BYTES_MAX));
    let at = shop.serve(app).await;
    let mut client = Client::connect(at).await;
    let head = charge_to("/charges", "k").without_body().header("transfer-encoding", "chunked").head();
    client.write(head).await;
    client.write(format!("{:x}\r\n{}\r\n0\r\n\r\n", BYTES_MAX + 1, "a".repeat(BYTES_MAX + 1))).await;
    client.answer_to("POST").await.unwrap().refused(400, "body_incomplete");
    ask(at, &charge_to("/charges", "k")).await.ran(201);
    assert_eq!(shop.charges(), 1);
    assert_outlives_a_hang_up(at, "/slow", &shop, &layer).await;
}
