//! How the process is, and its metrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use semel::Key;
use tokio::time::timeout;

use super::app::text;
use crate::access::{Authenticated, Need};
use crate::admin;
use crate::state::AppState;

/// How long the store may take to answer.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

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

pub(super) async fn alive() -> Response {
    text(StatusCode::OK, "alive\n")
}

pub(super) async fn ready(State(served): State<Arc<AppState>>) -> Response {
    match not_ready(&served).await {
        None => text(StatusCode::OK, "ready\n"),
        Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
    }
}

/// Why a process cannot do its work now; `None` if it can. Anybody may ask, so what the store said stays in the log.
async fn not_ready(served: &AppState) -> Option<&'static str> {
    if served.waits.is_draining() {
        return Some("draining: nothing new is taken");
    }
    // Nobody claims this key; that it is not there is an answer, too.
    let Ok(key) = Key::new("semel.readyz", "probe") else { return Some("the probe's key is none") };
    match timeout(STORE_TIMEOUT, served.semel.get(&key)).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => {
            tracing::warn!(%error, "semel: the store cannot be asked");
            Some("store: it answers with an error, which is in the log")
        }
        Err(_) => Some("store: no answer within a second"),
    }
}

pub(super) async fn metrics(
    State((served, gauges)): State<(Arc<AppState>, Gauges)>,
    headers: HeaderMap,
) -> Response {
    let may = Authenticated::looking(&served, &headers).and_then(|asker| asker.need(Need::List));
    if let Err(problem) = may {
        return problem.into_response();
    }
    let Some(scraped) = admin::recorder() else {
        return text(StatusCode::NOT_FOUND, "this program sends its metrics elsewhere\n");
    };
    (gauges.0)();
    text(StatusCode::OK, scraped.text())
}
