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
use ipnet::IpNet;
use semel_http::{client_address, request_id};
use semel_listen::{ClientBody, ConnectionInfo, HttpService, InFlight, ServiceFuture, Timeouts, admit};
use semel_ops::access_log::AccessLogWriter;
use tower_service::Service as _;
use tracing::{Instrument as _, Span};

use super::access_log::{Entry, LoggedBody, LoggedRequest};
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
    pub(crate) join_trace: Option<fn(&Span, &HeaderMap)>,
    /// `None` if there is no log.
    pub(crate) access_log: Option<Arc<AccessLogWriter>>,
    /// Proxies in front of the server, which say whose request it is.
    pub(crate) trusted_proxies: Vec<IpNet>,
}

impl HttpService for Dispatch {
    fn call(self: Arc<Self>, request: Request<Incoming>, connection: ConnectionInfo) -> ServiceFuture {
        Box::pin(async move {
            let version = request.version();
            let in_flight = self.in_flight.enter();
            let logged = self.logged(&request, &connection);
            let mut entry = Entry::new(logged.clone());
            let response = match (self.refused(&request, in_flight.is_none()), logged) {
                (Some(problem), _) => refused(problem, version),
                (None, Some(logged)) => logged.noting(self.let_in(request)).await,
                (None, None) => self.let_in(request).await,
            };
            entry.answered(response.status());
            response.map(|body| LoggedBody::new(body, entry, in_flight).map_err(Into::into).boxed_unsync())
        })
    }
}

impl Dispatch {
    /// What is noted of a request. Probes of load balancers are not: there is one every few seconds.
    fn logged(&self, request: &Request<Incoming>, connection: &ConnectionInfo) -> Option<Arc<LoggedRequest>> {
        let log = self.access_log.as_ref()?;
        if matches!(request.uri().path(), "/healthz" | "/readyz") {
            return None;
        }
        let headers = request.headers();
        let peer = client_address(connection.peer().ip(), headers, &self.trusted_proxies);
        Some(LoggedRequest::new(Arc::clone(log), request, peer, request_id(headers)))
    }

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
        // Around the span for collectors of traces: it names the request in all warnings about it.
        let with_id = request_id(request.headers()).map_or_else(
            Span::none,
            |id| tracing::warn_span!(target: "semel::request", "request", request_id = %id),
        );
        let span = with_id.in_scope(|| {
            tracing::info_span!(
                "semel.request",
                otel.kind = "server",
                otel.name = tracing::field::Empty,
                http.request.method = %request.method(),
                http.route = tracing::field::Empty,
                http.response.status_code = tracing::field::Empty,
            )
        });
        if let Some(join) = self.join_trace {
            join(&span, request.headers());
        }
        let mut app = self.app.clone();
        let answered = async move {
            let Ok(response) = app.call(request.map(AxumBody::new)).await;
            response
        };
        let response = answered.instrument(span.clone()).instrument(with_id).await;
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
