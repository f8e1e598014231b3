//! What every request goes through before the layer, and every answer after it.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::UPGRADE;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ipnet::IpNet;
use semel_http::{
    Code, Idempotency, IdempotencyLayer, PeerAddress, Problem, RequestObserver, ResponseBody, client_address,
    request_id_beside_key,
};
use tower_layer::Layer as _;
use tower_service::Service as _;
use tracing::{Instrument as _, Span};

use super::access_log::{Entry, LoggedRequest, Tally};
use super::forward::Forward;
use super::request::strip_trailers;
use super::upstream::UpstreamBody;
use semel_listen::{
    Begun, ClientBody, ConnectionInfo, HttpService, InFlight, ServiceBody, ServiceFuture, admit,
};
use semel_ops::access_log::AccessLogWriter;

/// When to come back to a proxy that has too much to do.
const OVERLOAD_RETRY: Duration = Duration::from_secs(1);

/// What every request goes through.
pub(super) struct Front {
    chain: RwLock<Arc<Chain>>,
    in_flight: Arc<InFlight>,
    observed: Arc<Observed>,
    body_idle: Duration,
}

/// The layer, and the upstream behind it. Replaced as a whole when settings are.
pub(super) struct Chain {
    layer: IdempotencyLayer,
    service: Idempotency<Forward>,
    /// Proxies in front of this one, which say whose request it is.
    trusted_proxies: Vec<IpNet>,
}

/// Where it is noted what came of requests.
pub(super) struct Observed {
    pub(super) log: Option<AccessLogWriter>,
    pub(super) tally: Tally,
}

impl Observed {
    pub(super) fn new(log: Option<AccessLogWriter>) -> Self {
        Self { log, tally: Tally::new() }
    }
}

impl Front {
    pub(super) fn new(
        chain: Chain,
        in_flight: Arc<InFlight>,
        observed: Observed,
        body_idle: Duration,
    ) -> Self {
        let chain = RwLock::new(Arc::new(chain));
        Self { chain, in_flight, observed: Arc::new(observed), body_idle }
    }

    /// Requests from now on go through this layer.
    pub(super) fn replace(&self, chain: Chain) {
        *self.chain.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(chain);
    }

    /// The layer that requests go through.
    pub(super) fn layer(&self) -> IdempotencyLayer {
        self.chain().layer.clone()
    }

    pub(super) fn in_flight(&self) -> &Arc<InFlight> {
        &self.in_flight
    }

    /// Writes the last lines of the access log.
    pub(super) async fn end_log(&self) {
        if let Some(log) = &self.observed.log {
            log.end().await;
        }
    }

    fn chain(&self) -> Arc<Chain> {
        Arc::clone(&self.chain.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpService for Front {
    fn call(self: Arc<Self>, request: Request<Incoming>, connection: ConnectionInfo) -> ServiceFuture {
        Box::pin(async move { self.answer(request, &connection).await })
    }
}

impl Front {
    async fn answer(&self, request: Request<Incoming>, connection: &ConnectionInfo) -> Response<ServiceBody> {
        let chain = self.chain();
        let mut begun = connection.begin();
        let in_flight = begun.as_ref().and_then(|_| self.in_flight.enter());
        let has_room = in_flight.is_some();
        let (logged, span) = self.logged(&chain, &request, connection);
        let mut entry = Entry::new(Arc::clone(&logged), in_flight);
        let response = if has_room {
            let mut request = request.map(|body| ClientBody::new(body, self.body_idle, strip_trailers));
            if self.observed.log.is_some() {
                request.extensions_mut().insert(RequestObserver(logged));
            }
            chain.answer(request, connection).instrument(span).await
        } else {
            chain.refused(overloaded(), &request)
        };
        entry.answered(&response);
        if !has_room && let Some(begun) = &mut begun {
            begun.ended();
        }
        response.map(|body| Answered::new(body, entry, begun).boxed_unsync())
    }
}

impl Front {
    /// What is noted of a request, and the span of all warnings about it, which has its id. Without one there is no span.
    fn logged(
        &self,
        chain: &Chain,
        request: &Request<Incoming>,
        connection: &ConnectionInfo,
    ) -> (Arc<LoggedRequest>, Span) {
        let headers = request.headers();
        let id = request_id_beside_key(headers, &chain.layer.settings().profile.names);
        let peer = client_address(connection.peer().ip(), headers, &chain.trusted_proxies);
        let logged = LoggedRequest::new(Arc::clone(&self.observed), request, peer, id);
        let span = id.map(|id| tracing::warn_span!(target: "semel::request", "request", request_id = %id));
        (logged, span.unwrap_or_else(Span::none))
    }
}

impl Chain {
    pub(super) fn new(layer: IdempotencyLayer, forward: Forward, trusted_proxies: Vec<IpNet>) -> Self {
        let service = layer.layer(forward);
        Self { layer, service, trusted_proxies }
    }

    async fn answer(
        &self,
        mut request: Request<ClientBody>,
        connection: &ConnectionInfo,
    ) -> Response<ResponseBody<UpstreamBody>> {
        if let Err(refused) = admit(&mut request) {
            let problem = Problem::new(Code::RequestMalformed, refused.detail()).status(refused.status());
            return self.refused(problem.closing(), &request);
        }
        if request.headers().contains_key(UPGRADE) {
            // Whatever becomes of it holds its place on.
            request.extensions_mut().insert(connection.clone());
        }
        request.extensions_mut().insert(PeerAddress(connection.peer()));
        let mut service = self.service.clone();
        let Ok(()) = poll_fn(|cx| service.poll_ready(cx)).await;
        let Ok(response) = service.call(request).await;
        response
    }

    fn refused<B>(&self, problem: Problem, request: &Request<B>) -> Response<ResponseBody<UpstreamBody>> {
        problem.response(&self.layer.settings().profile, request.version())
    }
}

fn overloaded() -> Problem {
    Problem::new(Code::Overloaded, "The proxy has as many requests as it can take. Nothing ran; try again.")
        .retry_after(OVERLOAD_RETRY)
        .closing()
}

/// The body of an answer on its way to a client.
struct Answered {
    body: ResponseBody<UpstreamBody>,
    entry: Entry,
    begun: Option<Begun>,
}

impl Answered {
    fn new(body: ResponseBody<UpstreamBody>, entry: Entry, begun: Option<Begun>) -> Self {
        let mut answered = Self { body, entry, begun };
        if answered.body.is_end_stream() {
            answered.ended();
        }
        answered
    }

    fn ended(&mut self) {
        self.entry.ended();
        self.not_abandoned();
    }

    fn not_abandoned(&mut self) {
        if let Some(begun) = &mut self.begun {
            begun.ended();
        }
    }
}

impl Body for Answered {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(frame) = &polled
            && (frame.is_none() || self.body.is_end_stream())
        {
            self.ended();
        }
        if let Poll::Ready(Some(Err(_))) = &polled {
            self.not_abandoned();
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
