//! Tracing: spans and events hold neither raw keys nor bodies, unless headers are logged without hiding the key.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use http::{HeaderName, Response, header};
use semel_http::Decided;
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;
use tower_http::trace::{DefaultMakeSpan, TraceLayer};
use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

use super::shop::{Shop, ask, assert_outlives_a_hang_up, assert_promises, charge_to, layer};

/// Everything that was logged, down to the last detail.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Takes everything that this thread logs, which is where a test's runtime runs.
    fn capture() -> (Self, DefaultGuard) {
        let log = Self::default();
        let subscriber =
            tracing_subscriber::fmt().with_max_level(Level::TRACE).with_ansi(false).with_writer(log.clone());
        (log, tracing::subscriber::set_default(subscriber.finish()))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

const KEY: &str = "key-8e03978e";
const TOKEN: &str = "token-of-carol";
const CARD: &str = "4242424242424242";

/// What is logged of a run, a replay and a mismatch.
async fn logged(app: impl FnOnce(Router) -> Router) -> String {
    let (log, _guard) = Log::capture();
    let shop = Shop::new();
    let at = shop.serve(app(shop.routes())).await;
    let request = charge_to("/charges", KEY).without_caller().from(TOKEN).body(CARD);
    ask(at, &request).await.ran(201);
    assert!(ask(at, &request).await.is_replay());
    ask(at, &request.clone().body("other")).await.refused(422, "mismatch");
    assert_eq!(shop.charges(), 1);
    let text = log.text();
    assert!(text.contains("/charges"), "{text}");
    text
}

#[tokio::test]
async fn spans_and_events_hold_neither_keys_nor_tokens_nor_bodies() {
    let trace = || TraceLayer::new_for_http().make_span_with(DefaultMakeSpan::new().level(Level::INFO));
    for text in [
        logged(|app| app.layer(layer()).layer(trace())).await,
        logged(|app| app.layer(trace()).layer(layer())).await,
    ] {
        for secret in [KEY, TOKEN, CARD] {
            assert!(!text.contains(secret), "{secret} is logged:\n{text}");
        }
    }
}

#[tokio::test]
async fn logged_headers_show_the_key_unless_it_is_marked_as_sensitive() {
    let trace = || {
        TraceLayer::new_for_http()
            .make_span_with(DefaultMakeSpan::new().level(Level::INFO).include_headers(true))
    };
    let hidden = [HeaderName::from_static("idempotency-key"), header::AUTHORIZATION];
    let hide = SetSensitiveRequestHeadersLayer::new(hidden);
    let text = logged(|app| app.layer(layer()).layer(trace()).layer(hide)).await;
    for secret in [KEY, TOKEN, CARD] {
        assert!(!text.contains(secret), "{secret} is logged:\n{text}");
    }
    // The mistake that the line above avoids.
    assert!(logged(|app| app.layer(layer()).layer(trace())).await.contains(KEY));
}

#[tokio::test]
async fn what_was_decided_can_be_logged_from_outside() {
    let on_response = |response: &Response<_>, _: Duration, _: &tracing::Span| {
        tracing::info!(decided = ?response.extensions().get::<Decided>(), "answered");
    };
    let text =
        logged(|app| app.layer(layer()).layer(TraceLayer::new_for_http().on_response(on_response))).await;
    let answered = text.lines().filter(|line| line.contains("answered")).collect::<Vec<_>>();
    for (line, decision) in answered.iter().zip(["run", "replay", "mismatch"]) {
        assert!(line.to_lowercase().contains(decision), "{line}");
    }
    assert_eq!(answered.len(), 3, "{text}");
}

#[tokio::test]
async fn promises_hold_in_a_traced_service() {
    let shop = Shop::new();
    let layer = layer();
    let at = shop.serve(shop.routes().layer(layer.clone()).layer(TraceLayer::new_for_http())).await;
    assert_promises(at, "/charges", &shop).await;
    assert_outlives_a_hang_up(at, "/slow", &shop, &layer).await;
}
