//! `tower::ServiceBuilder` around a service that is not axum's, served by hyper.

use std::net::SocketAddr;

use axum::body::Body;
use axum::middleware::{Next, from_fn};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use semel_http::RequestBody;
use tokio::net::TcpListener;
use tower::{BoxError, ServiceBuilder};
use tower_http::map_request_body::MapRequestBodyLayer;

use super::shop::{Shop, ask, assert_outlives_a_hang_up, assert_promises, charge_to, layer};

/// A plain service: a function from a request to a response or an error.
async fn charge(
    shop: Shop,
    request: Request<RequestBody<Incoming>>,
) -> Result<Response<Full<Bytes>>, BoxError> {
    if request.uri().path() == "/broken" {
        shop.charge();
        return Err("the card reader is gone".into());
    }
    let body = request.into_body().collect().await?.to_bytes();
    let text = format!("charge {} of {}", shop.charge(), String::from_utf8(body.to_vec())?);
    Ok(Response::builder()
        .status(StatusCode::CREATED)
        .header("location", "/charges/1")
        .body(Full::from(text))?)
}

/// Serves connections until the test ends.
async fn serve(shop: Shop) -> SocketAddr {
    let service =
        ServiceBuilder::new().layer(layer()).service_fn(move |request| charge(shop.clone(), request));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(service.clone());
            tokio::spawn(async move {
                // A service's error ends its connection, which is all that hyper can do about it.
                let _ended = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    address
}

#[tokio::test]
async fn a_plain_service_of_hyper_gets_every_promise() {
    let shop = Shop::new();
    assert_promises(serve(shop.clone()).await, "/charges", &shop).await;
}

/// Middleware of axum takes only axum's own body, so within one `ServiceBuilder` the body is changed back before it.
#[tokio::test]
async fn middleware_of_axum_inside_of_the_layer_gets_its_own_kind_of_body() {
    let (shop, layer) = (Shop::new(), layer());
    let layers = ServiceBuilder::new()
        .layer(layer.clone())
        .layer(MapRequestBodyLayer::new(Body::new))
        .layer(from_fn(async |request: axum::extract::Request, next: Next| next.run(request).await));
    let at = shop.serve(shop.routes().layer(layers)).await;
    assert_promises(at, "/charges", &shop).await;
    assert_outlives_a_hang_up(at, "/slow", &shop, &layer).await;
}

#[tokio::test]
async fn an_error_of_the_service_is_passed_on_and_its_key_waits_for_the_lease() {
    let shop = Shop::new();
    let at = serve(shop.clone()).await;
    let mut client = test_http::Client::connect(at).await;
    client.write(charge_to("/broken", "k").bytes()).await;
    assert!(client.answer_to("POST").await.is_none(), "hyper has no answer for an error");
    ask(at, &charge_to("/broken", "k")).await.refused(409, "in_flight");
    assert_eq!(shop.charges(), 1, "whether the card was charged is unknown, so nothing runs again");
}
