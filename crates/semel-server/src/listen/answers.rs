//! What answers requests, whatever it is.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;

use super::visit::Visit;

/// What answers requests. It counts each on its visit, and its answers hold the visit until their last byte.
pub(crate) trait Answers: Send + Sync + 'static {
    /// What its answers are made of.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// Answers one request.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        visit: Visit,
    ) -> impl Future<Output = Result<Response<Self::Body>, Infallible>> + Send;
}
