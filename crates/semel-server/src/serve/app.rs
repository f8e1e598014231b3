//! Which path is answered by what.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode, Uri};

use super::guard::{self, Guard};
use super::health::{self, Gauges};
use crate::api::problem::{Code, Problem};
use crate::state::AppState;
use crate::{api, dashboard};

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
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics).with_state((Arc::clone(&served), gauges)));
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

pub(super) fn text(status: StatusCode, text: impl Into<axum::body::Body>) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], text.into()).into_response()
}
