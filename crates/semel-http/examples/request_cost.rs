//! What the layer adds to a request, without a network: microseconds for each kind, as the median of several rounds.
//!
//! `cargo run --release -p semel-http --example request_cost`

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;
use semel::Semel;
use semel::store::MemoryStore;
use semel_http::{IdempotencyLayer, Principal};
use tokio::time::Instant;
use tower::{Layer, Service};

const REQUESTS: u32 = 20_000;
const ROUNDS: u32 = 9;

/// Answers at once with about 200 bytes.
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
        let mut response = Response::new(Full::new(Bytes::from_static(&[b'x'; 200])));
        response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
        response.headers_mut().insert("location", HeaderValue::from_static("/charges/ch_1"));
        ready(Ok(response))
    }
}

fn request(key: Option<u32>) -> Request<Full<Bytes>> {
    let body = Bytes::from_static(b"{\"name\":\"order-1\",\"amount\":4200,\"currency\":\"EUR\"}");
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static("/charges");
    let headers = request.headers_mut();
    headers.insert("authorization", HeaderValue::from_static("Bearer alice"));
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    if let Some(Ok(key)) = key.map(|key| HeaderValue::try_from(format!("order-{key:016}"))) {
        headers.insert("idempotency-key", key);
    }
    request
}

/// Microseconds for one request.
async fn took<S: Service<Request<Full<Bytes>>>>(service: &mut S, key: impl Fn(u32) -> Option<u32>) -> f64 {
    let started_at = Instant::now();
    for number in 0..REQUESTS {
        drop(service.call(request(key(number))).await);
    }
    started_at.elapsed().as_secs_f64() * 1e6 / f64::from(REQUESTS)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let layer = IdempotencyLayer::new(Semel::new(MemoryStore::new()), Principal::header("authorization"));
    let mut layered = layer.layer(Handler);
    let mut times: [Vec<f64>; 4] = Default::default();
    for round in 0..ROUNDS {
        let key = |number: u32| Some(round.saturating_mul(REQUESTS).saturating_add(number));
        let [bare, no_key, new_key, replay] = &mut times;
        bare.push(took(&mut Handler, key).await);
        no_key.push(took(&mut layered, |_| None).await);
        new_key.push(took(&mut layered, key).await);
        replay.push(took(&mut layered, key).await);
    }
    let [bare, no_key, new_key, replay] = times.map(median);
    println!("microseconds: bare {bare:.2}, no key {no_key:.2}, new key {new_key:.2}, replay {replay:.2}");
}
