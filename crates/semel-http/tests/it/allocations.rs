//! How often the layer allocates for a request: counted, because every one of them is paid for on every request.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use allocation_counter::measure;
use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body::Body;
use http_body_util::Full;
use semel::Semel;
use semel::store::MemoryStore;
use semel_http::{IdempotencyLayer, Principal};
use tower::{Layer, Service};

const REQUESTS: u64 = 1_000;

/// Answers at once, and allocates nothing but its header map.
#[derive(Clone)]
struct Handler;

impl<B> Service<Request<B>> for Handler {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        let mut response = Response::new(Full::new(Bytes::from_static(b"{\"id\":\"ch_1\"}")));
        response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
        ready(Ok(response))
    }
}

fn request(key: Option<u64>) -> Request<Full<Bytes>> {
    let mut request = Request::post("/charges")
        .header("authorization", "Bearer alice")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from_static(b"{\"amount\":4200}")))
        .unwrap();
    if let Some(key) = key {
        let key = HeaderValue::try_from(format!("order-{key}")).unwrap();
        request.headers_mut().insert("idempotency-key", key);
    }
    request
}

/// How many allocations one request makes, over many requests: the tables of the store grow now and then, which is not
/// the request's.
fn of_one_request<S, R>(mut service: S, key: impl Fn(u64) -> Option<u64>) -> u64
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>, Error = Infallible>,
    R: Body,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let counted = measure(|| {
        runtime.block_on(async {
            for number in 0..REQUESTS {
                let response = service.call(request(key(number))).await.unwrap();
                assert_eq!(response.status(), 200);
            }
        });
    });
    counted.count_total / REQUESTS
}

#[test]
fn a_request_makes_no_more_allocations_than_it_did_when_they_were_counted() {
    let layer = IdempotencyLayer::new(Semel::new(MemoryStore::new()), Principal::header("authorization"));
    let without_key = |_| None;
    let bare = of_one_request(Handler, without_key);
    let no_key = of_one_request(layer.layer(Handler), without_key) - bare;
    let bare = of_one_request(Handler, Some);
    let new_key = of_one_request(layer.layer(Handler), Some) - bare;
    let replay = of_one_request(layer.layer(Handler), Some) - bare;
    println!(
        "allocations beside the handler's: {no_key} without a key, {new_key} a new key, {replay} a replay"
    );
    assert_eq!(no_key, 0, "without a key");
    assert!(new_key <= 19, "{new_key} a new key");
    assert!(replay <= 14, "{replay} a replay");
}
