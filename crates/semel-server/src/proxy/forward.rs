//! The service inside the layer: a request goes to the upstream, and its answer comes back.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use semel_http::{Code, Settle};
use tower_service::Service;

use super::client::ClientBody;
use super::refusal;
use super::request::{Forwarded, Target, strip_request, strip_response};
use super::settings::ProxySettings;
use super::upstream::{Failure, Sent, Upstream, UpstreamBody};

/// The service inside the layer.
#[derive(Clone)]
pub(super) struct Forward(Arc<Inner>);

struct Inner {
    upstream: Arc<Upstream>,
    target: Target,
    forwarded: Forwarded,
}

impl Forward {
    pub(super) fn new(settings: &ProxySettings, upstream: Arc<Upstream>) -> semel::Result<Self> {
        let target = Target::new(&settings.upstream, settings.upstream_version)?;
        let forwarded = Forwarded::new(settings.tls.is_some(), settings.trusted_proxies.clone());
        Ok(Self(Arc::new(Inner { upstream, target, forwarded })))
    }
}

impl Service<Request<ClientBody>> for Forward {
    type Response = Response<UpstreamBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<UpstreamBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ClientBody>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { Ok(inner.carry(request).await) })
    }
}

impl Inner {
    async fn carry(&self, mut request: Request<ClientBody>) -> Response<UpstreamBody> {
        // Nobody behind the proxy is meant to see what the layers before this one said to each other.
        let extensions = std::mem::take(request.extensions_mut());
        let is_claimed = extensions.get::<semel::Permit>().is_some();
        strip_request(request.headers_mut());
        if let Some(peer) = extensions.get::<super::front::Peer>() {
            self.forwarded.tell(request.headers_mut(), peer.0.ip());
        }
        if self.target.point(&mut request).is_none() {
            let detail = "the path is too long to be sent on";
            return settled(refusal::of(Code::UpstreamUnreachable, detail), is_claimed, Settle::Release);
        }
        match self.upstream.send(request.map(Sent::new)).await {
            Ok(mut response) => {
                strip_response(response.headers_mut());
                response
            }
            Err(failure) => failed(&failure, is_claimed),
        }
    }
}

/// What a failure means, for the client and for the key.
fn failed(failure: &Failure, is_claimed: bool) -> Response<UpstreamBody> {
    let (code, detail, settle) = match failure {
        Failure::Unreachable(error) => (
            Code::UpstreamUnreachable,
            format!(
                "the request never left, because there is no connection to the upstream ({error}); try again"
            ),
            Settle::Release,
        ),
        Failure::Lost(error) => (
            Code::OutcomeUnknown,
            format!("the request was sent, and the connection ended before its answer came ({error})"),
            Settle::Unknown,
        ),
        Failure::TooSlow(span) => (
            Code::OutcomeUnknown,
            format!("the request was sent, and no answer came within {span:?}"),
            Settle::Unknown,
        ),
        Failure::Incomplete => (
            Code::BodyIncomplete,
            "the request's body ended early, or did not come in time".to_owned(),
            Settle::Unknown,
        ),
    };
    settled(refusal::of(code, &detail), is_claimed, settle)
}

fn settled(mut response: Response<UpstreamBody>, is_claimed: bool, settle: Settle) -> Response<UpstreamBody> {
    if is_claimed {
        response.extensions_mut().insert(settle);
    }
    response
}
