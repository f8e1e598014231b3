//! What every request goes through before the layer, and every answer after it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tower_service::Service;

use super::client::ClientBody;
use super::forward::Forward;
use super::refusal;
use super::request::admit;
use super::settings::Timeouts;
use super::upstream::UpstreamBody;

/// An answer as clients get it.
pub(super) type Answer = Response<UpstreamBody>;

#[derive(Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// What every request goes through.
pub(super) struct Front {
    chain: Forward,
    timeouts: Timeouts,
}

impl Front {
    pub(super) fn new(chain: Forward, timeouts: Timeouts) -> Self {
        Self { chain, timeouts }
    }

    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Result<Answer, Infallible> {
        let mut request = request.map(|body| ClientBody::new(body, self.timeouts.body_idle));
        if let Err(refused) = admit(&mut request) {
            return Ok(refusal::problem(
                refused.status(),
                "request_malformed",
                "The request is malformed",
                refused.detail(),
            ));
        }
        request.extensions_mut().insert(Peer(peer));
        let mut chain = self.chain.clone();
        chain.call(request).await
    }
}
