//! Which path is answered by what.

use std::sync::Arc;

use axum::Router;

use crate::served::Served;

/// Everything under `/v1`, the OpenAPI document, and its page.
pub fn router() -> Router<Arc<Served>> {
    Router::new()
}
