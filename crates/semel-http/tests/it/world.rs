//! A layer over the memory store on a clock that the test moves, and short ways to say what tests say often.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use semel::Semel;
use semel::store::{MemoryStore, Store};
use semel_http::{Idempotency, IdempotencyLayer, Principal, RequestBody, ResponseBody, Rules, Settings};
use semel_testkit::ManualClock;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer, ServiceExt, service_fn};

pub(crate) type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;
pub(crate) type Inner =
    BoxCloneSyncService<Request<RequestBody<Full<Bytes>>>, Response<Body>, std::convert::Infallible>;
pub(crate) type App = Idempotency<Inner>;

pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: ManualClock,
    pub(crate) calls: Arc<AtomicUsize>,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::at(1_700_000_000_000_000);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
        Self { store, clock, calls: Arc::default() }
    }

    pub(crate) fn layer(&self, settings: Settings) -> IdempotencyLayer {
        Self::layer_on(Arc::clone(&self.store), settings)
    }

    pub(crate) fn layer_on(store: Arc<dyn Store>, settings: Settings) -> IdempotencyLayer {
        let semel = Semel::builder_shared(store).build().unwrap();
        IdempotencyLayer::with_settings(semel, Principal::header("authorization"), settings).unwrap()
    }

    /// The layer around what `answer` does; each call of it is counted.
    pub(crate) fn app<F, Fut>(&self, layer: &IdempotencyLayer, answer: F) -> App
    where
        F: Fn(Request<RequestBody<Full<Bytes>>>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Response<Body>> + Send + 'static,
    {
        let calls = Arc::clone(&self.calls);
        let service = service_fn(move |request| {
            calls.fetch_add(1, Ordering::SeqCst);
            let answer = answer(request);
            async move { Ok(answer.await) }
        });
        layer.layer(BoxCloneSyncService::new(service))
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// The default settings with other rules for every path.
pub(crate) fn ruled(change: impl FnOnce(&mut Rules)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings.profile.rules);
    settings
}

/// A charge, sent with a key.
pub(crate) fn charge(key: &str, body: &str) -> Request<Full<Bytes>> {
    Request::post("/charges")
        .header("authorization", "Bearer alice")
        .header("idempotency-key", key)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap()
}

pub(crate) fn answer(status: u16, body: &str) -> Response<Body> {
    let mut response = Response::new(whole(Bytes::from(body.to_owned())));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

pub(crate) fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(BoxError::from).boxed_unsync()
}

/// What came back, read to its end.
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<http::HeaderMap>,
}

impl Told {
    pub(crate) fn code(&self) -> String {
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        problem["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }
}

pub(crate) async fn send(app: &App, request: Request<Full<Bytes>>) -> Told {
    read(app.clone().oneshot(request).await.unwrap()).await
}

pub(crate) async fn read(response: Response<ResponseBody<Body>>) -> Told {
    let (parts, body) = response.into_parts();
    let collected = body.collect().await.unwrap();
    let trailers = collected.trailers().cloned();
    Told { status: parts.status.as_u16(), headers: parts.headers, body: collected.to_bytes(), trailers }
}
