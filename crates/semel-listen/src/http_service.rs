//! The service that answers requests.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;

use crate::connection_info::ConnectionInfo;

/// The body of every response.
///
/// One type for all services: hyper's connections and h2 are then compiled once, here, and not for each of them again.
pub type ServiceBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;
/// A response that is being made.
pub type ServiceFuture = Pin<Box<dyn Future<Output = Response<ServiceBody>> + Send>>;

/// The service that answers requests: the proxy, the claim server, an admin router.
pub trait HttpService: Send + Sync + 'static {
    /// Answers one request.
    fn call(self: Arc<Self>, request: Request<Incoming>, connection: ConnectionInfo) -> ServiceFuture;
}
