//! Follows one request through the layer, for logs of requests whose client may leave before their answer.

use std::fmt;
use std::sync::Arc;

use http::{Extensions, StatusCode};
use semel::RecordId;

/// Follows one request: a request extension that the layer reads. Without one, nothing is told and nothing is paid.
#[derive(Clone)]
pub struct RequestObserver(pub Arc<dyn Observe>);

/// What an observer is told, on the task that serves the request: do not block.
pub trait Observe: Send + Sync {
    /// The record that the request is about. Called again if the key turns out to be stored under its identity of 0.1.
    fn identified(&self, key: RecordId);

    /// A run has ended whose client had left: the status and the extensions of the answer that the client would have got;
    /// `None` if the service failed without one.
    fn ended_without_client(&self, answer: Option<(StatusCode, &Extensions)>);
}

impl fmt::Debug for RequestObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestObserver")
    }
}
