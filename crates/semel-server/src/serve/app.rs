//! Which path is answered by what; how the process is, and its metrics.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode, Uri};

use super::guard::{self, Guard};
use crate::access::{Authenticated, Need};
use crate::api::problem::{Code, Problem};
use crate::state::AppState;
use crate::{admin, api, dashboard, monitoring};

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The API, the dashboard, health and metrics.
    Everything,
    /// The dashboard and what of the API reads; health and metrics.
    ReadSide,
    /// Health and metrics.
    HealthOnly,
}

/// The API, the dashboard, health and metrics, with all checks: what a server answers, without its listener.
pub fn app(served: Arc<AppState>) -> Router {
    shown(served, Gauges::none(), Shown::Everything)
}

pub(crate) fn shown(served: Arc<AppState>, gauges: Gauges, shown: Shown) -> Router {
    let health = Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics).with_state((Arc::clone(&served), gauges, shown)));
    let routes = if shown == Shown::HealthOnly {
        health
    } else {
        health.merge(api::router()).merge(dashboard::router())
    };
    let guard = Guard::new(Arc::clone(&served), shown);
    routes
        .fallback(nothing_here)
        .method_not_allowed_fallback(another_method)
        .layer(from_fn_with_state(Arc::new(guard), guard::guarded))
        .with_state(served)
}

async fn nothing_here(uri: Uri) -> Response {
    if uri.path().starts_with("/v1") {
        return Problem::not_found("there is no such path; /docs lists those that there are").into_response();
    }
    dashboard::not_found().await
}

async fn another_method(method: Method, uri: Uri) -> Response {
    // Whatever the OpenAPI document describes is refused as it says.
    if uri.path().starts_with("/v1") || matches!(uri.path(), "/openapi.json" | "/docs") {
        let detail = format!("{method} is not answered here; /docs says which method is");
        return Problem::new(Code::MethodNotAllowed, detail).into_response();
    }
    text(StatusCode::METHOD_NOT_ALLOWED, "This path wants another method.\n")
}

fn text(status: StatusCode, text: impl Into<axum::body::Body>) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], text.into()).into_response()
}

/// Sets the gauges that are only known when somebody looks.
#[derive(Clone)]
pub(crate) struct Gauges(pub(crate) Arc<dyn Fn() + Send + Sync>);

impl Gauges {
    pub(crate) fn new(measure: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(measure))
    }

    pub(crate) fn none() -> Self {
        Self::new(|| {})
    }
}

impl fmt::Debug for Gauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gauges")
    }
}

async fn alive() -> Response {
    text(StatusCode::OK, "alive\n")
}

/// Whether this process can do its work now, or why not. The answer needs no token, so the messages of the store stay in the log.
async fn ready(State(served): State<Arc<AppState>>) -> Response {
    if served.waits.is_draining() {
        return text(StatusCode::SERVICE_UNAVAILABLE, "not ready: draining: nothing new is taken\n");
    }
    if served.waits.is_leaving() {
        return text(StatusCode::SERVICE_UNAVAILABLE, "not ready: stopping: send new requests elsewhere\n");
    }
    let status = served.health.now().await;
    if status.is_fine() {
        text(StatusCode::OK, "ready\n")
    } else if status.not_ready.is_some() {
        text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: store: {status}\n"))
    } else {
        text(StatusCode::OK, format!("ready; store: {status}\n"))
    }
}

/// For Prometheus. On a claim server they are for tokens that may list; beside a proxy, tokens are for the dashboard alone, and
/// whoever reaches the admin listener may scrape.
async fn metrics(
    State((served, gauges, shown)): State<(Arc<AppState>, Gauges, Shown)>,
    headers: HeaderMap,
) -> Response {
    if shown == Shown::Everything {
        let may = Authenticated::looking(&served, &headers).and_then(|asker| asker.need(Need::List));
        if let Err(problem) = may {
            return problem.into_response();
        }
    }
    let Some(scraped) = admin::recorder() else {
        return text(StatusCode::NOT_FOUND, "this program sends its metrics elsewhere\n");
    };
    (gauges.0)();
    monitoring::gauges::set_from(&served.census);
    text(StatusCode::OK, scraped.text())
}
