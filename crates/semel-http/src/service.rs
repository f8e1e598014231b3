//! The service: requests that are not covered pass unchanged; each of the others is an exchange.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use semel::Permit;
use tower_service::Service;

use crate::body::{RequestBody, ResponseBody};
use crate::exchange::{ResponseFuture, decide, start};
use crate::identity::{claimed_outside, client_target};
use crate::layer::IdempotencyLayer;
use crate::profile::KeyPresence;

/// A service with safe retries.
#[derive(Clone, Debug)]
pub struct Idempotency<S> {
    layer: IdempotencyLayer,
    service: S,
}

impl<S> Idempotency<S> {
    pub(crate) fn new(layer: IdempotencyLayer, service: S) -> Self {
        Self { layer, service }
    }

    /// The service behind the layer. What is called here is not protected.
    pub fn get_ref(&self) -> &S {
        &self.service
    }

    /// The service behind the layer, to change it.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.service
    }

    /// The service without the layer.
    pub fn into_inner(self) -> S {
        self.service
    }
}

impl<S, B, R> Service<Request<B>> for Idempotency<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, R, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let layer = &self.layer.inner;
        let target = client_target(request.extensions(), request.uri());
        let Some(rules) = layer.routes.rules(request.method(), target.path()) else {
            return ResponseFuture::passing(self.service.call(request.map(RequestBody::streaming)));
        };
        let names = &layer.settings.profile.names;
        let has_key = request.headers().contains_key(&names.key)
            || names.key_aliases.iter().any(|alias| request.headers().contains_key(alias));
        if !has_key && rules.key == KeyPresence::Optional {
            return ResponseFuture::passing(self.service.call(request.map(RequestBody::streaming)));
        }
        let mut request = request;
        if request.extensions().get::<Permit>().is_some() {
            let (parts, body) = request.into_parts();
            let is_claimed = claimed_outside(layer, rules, &parts);
            request = Request::from_parts(parts, body);
            if is_claimed {
                return ResponseFuture::passing(self.service.call(request.map(RequestBody::streaming)));
            }
        }
        // The one that was ready is the one to be called; its clone may not be.
        let clone = self.service.clone();
        let service = mem::replace(&mut self.service, clone);
        ResponseFuture::exchange(decide(self.layer.clone(), Arc::clone(rules), service, request), start)
    }
}
