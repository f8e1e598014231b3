//! The layer of cratestack-axum, as it is published.
//!
//! It has no store in memory. Of the two stores that are published for it the one on Redis is the quicker. So that its layer is not
//! judged by the way to a server alone, it is also measured on a map that is written here for it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use cratestack_axum::idempotency::{IdempotencyLayer, IdempotencyStore};
use cratestack_redis::RedisIdempotencyStore;

use super::map::MapStore;

pub(super) fn on_redis(charges: Router, url: &str) -> Result<Router> {
    Ok(layered(charges, RedisIdempotencyStore::open(url, "bench")?))
}

pub(super) fn on_map(charges: Router) -> Router {
    layered(charges, MapStore::default())
}

/// Callers are told apart by `Authorization`, which is what it does by itself.
fn layered(charges: Router, store: impl IdempotencyStore) -> Router {
    charges.layer(IdempotencyLayer::new(Arc::new(store), Duration::from_hours(24)))
}
