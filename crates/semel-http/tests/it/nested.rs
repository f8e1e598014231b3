//! H31 in axum: the layer inside routers that strip a prefix of the path.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::OriginalUri;
use axum::routing::post;
use http::Request;
use semel::Semel;
use semel::store::{MemoryStore, Scan, Store};
use semel_http::{IdempotencyLayer, KeyIdentity, KeyPresence, KeyScope, Principal, Route, Rules, Settings};
use tower::ServiceExt;

/// A router with `/pay` under the layer, which answers with the path that the client sent and the number of the call.
struct Payments {
    store: Arc<dyn Store>,
    calls: Arc<AtomicUsize>,
}

/// Status, body, and whether it is a replay.
type Answer = (u16, String, bool);

impl Payments {
    fn new() -> Self {
        Self { store: Arc::new(MemoryStore::new()), calls: Arc::default() }
    }

    fn router(&self, settings: Settings) -> Router {
        let semel = Semel::builder_shared(Arc::clone(&self.store)).build().unwrap();
        let layer = IdempotencyLayer::with_settings(semel, Principal::shared(), settings).unwrap();
        let calls = Arc::clone(&self.calls);
        let pay = move |OriginalUri(uri): OriginalUri| async move {
            format!("{} {}", uri.path(), calls.fetch_add(1, Ordering::SeqCst) + 1)
        };
        Router::new().route("/pay", post(pay)).layer(layer)
    }

    /// The same router under two prefixes, one of them two routers deep.
    fn app(&self, settings: &Settings) -> Router {
        let deep = Router::new().nest("/deep", self.router(settings.clone()));
        let flat = self.router(settings.clone());
        Router::new().nest("/a", flat.clone()).nest("/b", flat).nest("/c", deep)
    }

    async fn labels(&self) -> Vec<String> {
        let page = self.store.scan(Scan { limit: 10, ..Scan::default() }).await.unwrap().value;
        let mut labels: Vec<_> = page
            .records
            .iter()
            .map(|record| record.label.as_deref().unwrap_or_default().to_owned())
            .collect();
        labels.sort();
        labels
    }
}

async fn sent(app: &Router, path: &str) -> Answer {
    let request = Request::post(path).header("idempotency-key", "k").body(Body::from("body")).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let (status, is_replay) =
        (response.status().as_u16(), response.headers().contains_key("idempotent-replayed"));
    let bytes = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
    (status, String::from_utf8(bytes.to_vec()).unwrap(), is_replay)
}

fn by_route() -> Settings {
    let mut settings = Settings::default();
    settings.profile.rules.scope = KeyScope::Route;
    settings
}

const PATHS: [&str; 3] = ["/a/pay", "/b/pay", "/c/deep/pay"];

#[tokio::test]
async fn h31_the_same_key_under_another_prefix_is_a_mismatch_and_never_its_answer() {
    let payments = Payments::new();
    let app = payments.app(&Settings::default());
    assert_eq!(sent(&app, "/a/pay").await, (200, "/a/pay 1".to_owned(), false));
    for path in ["/b/pay", "/c/deep/pay", "/a/pay?x=1"] {
        let (status, body, _) = sent(&app, path).await;
        assert!(status == 422 && body.contains("mismatch"), "{path}: {status} {body}");
    }
    assert_eq!(sent(&app, "/a/pay").await, (200, "/a/pay 1".to_owned(), true));
}

#[tokio::test]
async fn h31_keys_scoped_by_route_lose_no_effect_under_another_prefix() {
    let payments = Payments::new();
    let app = payments.app(&by_route());
    for (number, path) in PATHS.iter().enumerate() {
        let first = format!("{path} {}", number + 1);
        assert_eq!(sent(&app, path).await, (200, first.clone(), false));
        assert_eq!(sent(&app, path).await, (200, first, true));
    }
    assert_eq!(payments.labels().await, PATHS.map(|path| format!("POST {path}")));
}

#[tokio::test]
async fn h31_a_route_names_the_path_that_the_client_sends() {
    let payments = Payments::new();
    let rules = Rules { key: KeyPresence::Required, ..Rules::default() };
    let route = |path: &str| Route { path: path.to_owned(), rules: rules.clone() };
    let app = payments.app(&Settings { routes: vec![route("/b/pay"), route("/pay")], ..Settings::default() });
    let without_key = |path: &str| {
        let request = Request::post(path).body(Body::empty()).unwrap();
        let app = app.clone();
        async move { app.oneshot(request).await.unwrap().status().as_u16() }
    };
    assert_eq!((without_key("/a/pay").await, without_key("/b/pay").await), (200, 400));
}

#[tokio::test]
async fn h31_a_layer_around_the_nested_routers_sees_the_same_paths() {
    let payments = Payments::new();
    let semel = Semel::builder_shared(Arc::clone(&payments.store)).build().unwrap();
    let outside = IdempotencyLayer::new(semel, Principal::shared());
    let plain = Router::new().route("/pay", post(|| async { "paid" }));
    let outer = Router::new().nest("/a", plain.clone()).nest("/b", plain).layer(outside);
    assert_eq!(sent(&outer, "/a/pay").await.0, 200);
    assert_eq!(sent(&outer, "/b/pay").await.0, 422);
    // The layer inside finds what the layer outside stored: one key, one path, wherever it stands.
    let inner = payments.app(&Settings::default());
    assert_eq!(sent(&inner, "/a/pay").await, (200, "paid".to_owned(), true));
}

fn with(identity: KeyIdentity, settings: Settings) -> Settings {
    Settings { key_identity: identity, ..settings }
}

#[tokio::test]
async fn h31_an_upgrade_runs_no_key_of_0_1_again() {
    for settings in [Settings::default(), by_route()] {
        let payments = Payments::new();
        let before = payments.app(&with(KeyIdentity::V0_1, settings.clone()));
        assert_eq!(sent(&before, "/a/pay").await, (200, "/a/pay 1".to_owned(), false));
        // Control: in 0.1 the other prefix got this answer. The setting that keeps its identity keeps that, too.
        assert_eq!(sent(&before, "/b/pay").await, (200, "/a/pay 1".to_owned(), true));
        let upgrade = payments.app(&with(KeyIdentity::Upgrade, settings.clone()));
        assert_eq!(sent(&upgrade, "/a/pay").await, (200, "/a/pay 1".to_owned(), true));
        assert_eq!(payments.calls.load(Ordering::SeqCst), 1);
    }
    // Control: without the setting, a key that is scoped by route runs again.
    let payments = Payments::new();
    sent(&payments.app(&with(KeyIdentity::V0_1, by_route())), "/a/pay").await;
    assert!(!sent(&payments.app(&by_route()), "/a/pay").await.2);
}

#[tokio::test]
async fn h31_new_keys_of_an_upgrade_are_found_after_it() {
    for settings in [Settings::default(), by_route()] {
        let payments = Payments::new();
        let upgrade = payments.app(&with(KeyIdentity::Upgrade, settings.clone()));
        assert_eq!(sent(&upgrade, "/a/pay").await, (200, "/a/pay 1".to_owned(), false));
        assert_eq!(sent(&upgrade, "/a/pay").await, (200, "/a/pay 1".to_owned(), true));
        let (_, other, is_replay) = sent(&upgrade, "/b/pay").await;
        assert!(!is_replay && !other.contains("/a/pay"), "{other}");
        let after = payments.app(&settings);
        assert_eq!(sent(&after, "/a/pay").await, (200, "/a/pay 1".to_owned(), true));
    }
}
