//! Compression: outside of the layer it suits each client; inside, the first client decides for all.

use axum::Router;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use test_http::Answer;
use tower::{Layer, ServiceExt, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::decompression::RequestDecompressionLayer;

use super::shop::{
    Shop, ask, assert_outlives_a_hang_up, assert_promises, assert_same_answer, charge_to, layer,
};

fn gzipped(key: &str) -> test_http::Request {
    charge_to("/charges", key).header("accept-encoding", "gzip")
}

fn is_gzip(answer: &Answer) -> bool {
    assert_eq!(answer.header("content-encoding") == Some("gzip"), answer.body.starts_with(&[0x1f, 0x8b]));
    answer.header("content-encoding").is_some()
}

#[tokio::test]
async fn outside_each_client_gets_the_encoding_that_it_asks_for() {
    let shop = Shop::new();
    let layer = layer();
    let at = shop.serve(shop.routes().layer(layer.clone()).layer(CompressionLayer::new())).await;
    assert_promises(at, "/charges", &shop).await;
    assert_outlives_a_hang_up(at, "/slow", &shop, &layer).await;
    let first = ask(at, &gzipped("k")).await;
    assert!(is_gzip(first.ran(201)));
    assert_eq!(first.header("vary"), Some("accept-encoding"));
    assert_same_answer(&ask(at, &gzipped("k")).await, &first);
    let plain = ask(at, &charge_to("/charges", "k")).await;
    assert!(plain.is_replay() && !is_gzip(&plain), "{plain:?}");
    assert!(plain.text().starts_with("charge 4 of "), "{plain:?}");
    assert_eq!(plain.header("location"), first.header("location"));
}

/// The wrong order: what is stored is what the first client could read.
#[tokio::test]
async fn inside_a_retry_gets_the_encoding_of_the_first_client() {
    let shop = Shop::new();
    let at = shop.serve(shop.routes().layer(CompressionLayer::new()).layer(layer())).await;
    assert!(is_gzip(ask(at, &gzipped("k")).await.ran(201)));
    let plain = ask(at, &charge_to("/charges", "k")).await;
    assert!(plain.is_replay() && is_gzip(&plain), "a client that cannot read gzip got it: {plain:?}");
}

/// Text as gzip, as the layer that is tested here makes it.
async fn gzip(text: &str) -> Bytes {
    let text = text.to_owned();
    let service = CompressionLayer::new().layer(service_fn(move |_: Request<()>| {
        let response = Response::new(Full::new(Bytes::from(text.clone())));
        async { Ok::<_, std::convert::Infallible>(response) }
    }));
    let request = Request::builder().header("accept-encoding", "gzip").body(()).unwrap();
    service.oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes()
}

/// The status of a retry that sends the same JSON, now as gzip.
async fn compressed_retry(app: impl FnOnce(Router) -> Router) -> Answer {
    let shop = Shop::new();
    let at = shop.serve(app(shop.routes())).await;
    let text = format!(r#"{{"amount": 4200, "note": "{}"}}"#, "a".repeat(100));
    let plain = charge_to("/charges", "k").body(text.clone());
    ask(at, &plain).await.ran(201);
    let packed = charge_to("/charges", "k").header("content-encoding", "gzip").body(gzip(&text).await);
    ask(at, &packed).await
}

#[tokio::test]
async fn requests_unpacked_outside_are_compared_by_what_they_say() {
    let app = |routes: Router| routes.layer(layer()).layer(RequestDecompressionLayer::new());
    assert!(compressed_retry(app).await.is_replay());
    // The wrong order: the layer compares the packed bytes.
    let app = |routes: Router| routes.layer(RequestDecompressionLayer::new()).layer(layer());
    compressed_retry(app).await.refused(422, "mismatch");
}
