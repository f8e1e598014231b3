//! What every request goes through before it is answered, and every answer after it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body as AxumBody;
use axum::response::{IntoResponse as _, Response};
use http::header::CONNECTION;
use http::{HeaderMap, HeaderValue, Request, Version};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use semel_listen::{ClientBody, ConnectionInfo, HttpService, InFlight, ServiceFuture, Timeouts, admit};
use tower_service::Service as _;
use tracing::Instrument as _;

use super::guard::secure;
use crate::api::problem::{Code, Problem};
use crate::dashboard::OverTls;
use crate::state::AppState;

/// When to come back to a server that has too much to do, or is about to stop.
const COME_BACK: Duration = Duration::from_secs(1);

/// What every request goes through.
pub(crate) struct Dispatch {
    pub(crate) app: Router,
    pub(crate) served: Arc<AppState>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) timeouts: Timeouts,
    pub(crate) is_over_tls: bool,
    pub(crate) join_trace: Option<fn(&tracing::Span, &HeaderMap)>,
}

impl HttpService for Dispatch {
    fn call(self: Arc<Self>, request: Request<Incoming>, _connection: ConnectionInfo) -> ServiceFuture {
        Box::pin(async move {
            let version = request.version();
            let in_flight = self.in_flight.enter();
            let response = match self.refused(&request, in_flight.is_none()) {
                Some(problem) => refused(problem, version),
                None => self.let_in(request).await,
            };
            response.map(|body| {
                let error = move |error: axum::Error| {
                    // Held by the body: a response is in flight until its last byte.
                    let _held = &in_flight;
                    error.into()
                };
                body.map_err(error).boxed_unsync()
            })
        })
    }
}

impl Dispatch {
    async fn let_in(&self, request: Request<Incoming>) -> Response {
        let version = request.version();
        let Timeouts { body, body_idle, .. } = self.timeouts;
        let mut request =
            request.map(|incoming| ClientBody::new(incoming, body_idle, HeaderMap::clear).within(body));
        if let Err(refusal) = admit(&mut request) {
            return refused(Problem::invalid(refusal.detail()), version);
        }
        if self.is_over_tls {
            request.extensions_mut().insert(OverTls);
        }
        let span = tracing::info_span!(
            "semel.request",
            otel.kind = "server",
            otel.name = tracing::field::Empty,
            http.request.method = %request.method(),
            http.route = tracing::field::Empty,
            http.response.status_code = tracing::field::Empty,
        );
        if let Some(join) = self.join_trace {
            join(&span, request.headers());
        }
        let mut app = self.app.clone();
        let answered = async move {
            let Ok(response) = app.call(request.map(AxumBody::new)).await;
            response
        };
        let response = answered.instrument(span.clone()).await;
        span.record("http.response.status_code", response.status().as_u16());
        response
    }

    /// Why nothing is begun now. A server that stops says so, and how it is, to the last.
    fn refused(&self, request: &Request<Incoming>, is_full: bool) -> Option<Problem> {
        let detail = if is_full {
            "the server has as many requests as it can take; nothing was done"
        } else if self.served.waits.is_draining()
            && !matches!(request.uri().path(), "/healthz" | "/readyz" | "/metrics")
        {
            "the server is about to stop; nothing was done. Ask another, or this one when it is back"
        } else {
            return None;
        };
        Some(Problem::new(Code::Unavailable, detail).retry_after(COME_BACK))
    }
}

/// A refusal that ends its connection: what comes after it on the same one is not trusted, or not taken.
fn refused(problem: Problem, version: Version) -> Response {
    let mut response = problem.into_response();
    secure(response.headers_mut());
    if version <= Version::HTTP_11 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
