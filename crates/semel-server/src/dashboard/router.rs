//! Which path is answered by what.

use std::sync::Arc;

use axum::Router;

use crate::served::Served;

/// Every page, and what pages are made of.
pub fn router() -> Router<Arc<Served>> {
    Router::new()
}
