//! The service inside the layer: a request goes to the upstream, and its answer comes back.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONNECTION, TE, UPGRADE};
use http::{Extensions, HeaderValue, Request, Response, StatusCode, Version};
use semel_http::{Code, PeerAddress, Problem, Profile, RequestBody, Settle};
use tokio::sync::watch;
use tokio::time::Instant;
use tower_service::Service;

use super::abandoned::{Abandoned, Exchange};
use super::access_log::Said;
use super::request::{Forwarded, Target, strip, strip_request, strip_underscores};
use super::settings::{ProxySettings, UnderscoresInHeaders, UpstreamVersion};
use super::tunnel::{Lasting, Wanted};
use super::upstream::{Failure, Sent, Upstream, UpstreamBody};
use semel_listen::{ClientBody, InFlight, Phase};

/// When to come back to an upstream that cannot be reached.
const UNREACHABLE_RETRY: Duration = Duration::from_secs(1);

/// The service inside the layer.
#[derive(Clone)]
pub(super) struct Forward(Arc<Inner>);

struct Inner {
    shared: Shared,
    target: Target,
    forwarded: Forwarded,
    profile: Profile,
    version: UpstreamVersion,
    underscores: UnderscoresInHeaders,
    upgraded_idle: Duration,
}

/// What stays when settings are replaced.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) upstream: Arc<Upstream>,
    pub(super) abandoned: Abandoned,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) phase: watch::Receiver<Phase>,
    /// Whether clients come over TLS: from plain to TLS, or back, takes a restart.
    pub(super) is_over_tls: bool,
}

impl Forward {
    pub(super) fn new(settings: &ProxySettings, shared: Shared) -> semel::Result<Self> {
        Ok(Self(Arc::new(Inner {
            target: Target::new(&settings.upstream, settings.upstream_version)?,
            forwarded: Forwarded::new(shared.is_over_tls, settings.trusted_proxies.clone()),
            shared,
            profile: settings.http.profile.clone(),
            version: settings.upstream_version,
            underscores: settings.underscores_in_headers,
            upgraded_idle: settings.upstream_limits.upgraded_idle,
        })))
    }
}

impl Service<Request<RequestBody<ClientBody>>> for Forward {
    type Response = Response<UpstreamBody>;
    type Error = Infallible;
    type Future = Exchange;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody<ClientBody>>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        let client = request.version();
        self.0.shared.abandoned.exchange(client, async move { inner.carry(request).await })
    }
}

impl Inner {
    async fn carry(&self, mut request: Request<RequestBody<ClientBody>>) -> Response<UpstreamBody> {
        let version = request.version();
        // Nobody behind the proxy is meant to see what the layers before this one said to each other.
        let mut extensions = std::mem::take(request.extensions_mut());
        let is_claimed = extensions.get::<semel::Permit>().is_some();
        let Some(wanted) = self.prepare(&mut request, &mut extensions) else {
            let detail = "The path is too long to be passed on. Nothing ran.";
            let problem = Problem::new(Code::RequestMalformed, detail);
            return self.refused(problem, version, is_claimed.then_some(Settle::Release));
        };
        let started_at = Instant::now();
        let mut response = match self.shared.upstream.send(request.map(Sent::new)).await {
            Ok(response) => self.answered(response, wanted),
            Err(failure) => Err(failure),
        }
        .unwrap_or_else(|failure| self.failed(&failure, version, is_claimed));
        let said = response.extensions_mut().get_or_insert_default::<Said>();
        said.upstream_took = Some(started_at.elapsed());
        response
    }

    /// Makes the client's request one of the proxy's own. `None` if that cannot be.
    #[expect(
        clippy::option_option,
        reason = "cannot be sent; is sent; is sent and wants to become something else"
    )]
    fn prepare<B>(&self, request: &mut Request<B>, extensions: &mut Extensions) -> Option<Option<Wanted>> {
        let wanted = match self.version {
            UpstreamVersion::Http1 => Wanted::of(request.version(), request.headers(), extensions),
            UpstreamVersion::Http2 => None,
        };
        let headers = request.headers_mut();
        strip_request(headers);
        if self.underscores == UnderscoresInHeaders::Drop {
            strip_underscores(headers);
        }
        if let Some(wanted) = &wanted {
            wanted.ask(headers);
        } else if self.version == UpstreamVersion::Http1 && headers.contains_key(TE) {
            headers.insert(CONNECTION, HeaderValue::from_static("te"));
        }
        if let Some(peer) = extensions.get::<PeerAddress>() {
            self.forwarded.tell(headers, peer.0.ip());
        }
        self.target.point(request)?;
        Some(wanted)
    }

    fn answered(
        &self,
        mut response: Response<UpstreamBody>,
        wanted: Option<Wanted>,
    ) -> Result<Response<UpstreamBody>, Failure> {
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            strip(response.headers_mut());
            return Ok(response);
        }
        let wanted = wanted.ok_or(Failure::Switched)?;
        let upstream = hyper::upgrade::on(&mut response);
        let protocol = response.headers_mut().remove(UPGRADE);
        strip(response.headers_mut());
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
        if let Some(protocol) = protocol {
            response.headers_mut().insert(UPGRADE, protocol);
        }
        let Shared { in_flight, phase, .. } = &self.shared;
        let lasting =
            Lasting { in_flight: in_flight.enter_anyway(), phase: phase.clone(), idle: self.upgraded_idle };
        wanted.carry(upstream, lasting);
        Ok(response)
    }

    /// What a failure means, for the client and for the key.
    fn failed(&self, failure: &Failure, version: Version, is_claimed: bool) -> Response<UpstreamBody> {
        if !matches!(failure, Failure::Abandoned) {
            metrics::counter!(semel::metrics::UPSTREAM_ERRORS.name, "kind" => failure.word()).increment(1);
            tracing::warn!(kind = failure.word(), why = %failure, "semel: no answer from the upstream");
        }
        let (code, settle) = match failure {
            Failure::Unreachable(_) | Failure::Refused(_) => (Code::UpstreamUnreachable, Settle::Release),
            Failure::Lost(_)
            | Failure::TooSlow(_)
            | Failure::Switched
            | Failure::Malformed(_)
            | Failure::Abandoned => (Code::OutcomeUnknown, Settle::Unknown),
            Failure::Incomplete => (Code::BodyIncomplete, Settle::Unknown),
        };
        let problem = Problem::new(code, failure.to_string());
        let problem = match failure {
            Failure::Unreachable(_) | Failure::Refused(_) => problem.retry_after(UNREACHABLE_RETRY),
            Failure::Incomplete => problem.closing(),
            // An answer came, and was not good: that is no gateway's time-out.
            Failure::Malformed(_) => problem.status(StatusCode::BAD_GATEWAY),
            Failure::Lost(_) | Failure::TooSlow(_) | Failure::Switched | Failure::Abandoned => problem,
        };
        self.refused(problem, version, is_claimed.then_some(settle))
    }

    fn refused(&self, problem: Problem, version: Version, settle: Option<Settle>) -> Response<UpstreamBody> {
        let code = problem.code();
        let mut response = problem.response(&self.profile, version).map(UpstreamBody::own);
        let extensions = response.extensions_mut();
        extensions.insert(Said { code: Some(code), upstream_took: None });
        if let Some(settle) = settle {
            extensions.insert(settle);
        }
        response
    }
}
