//! What the API keeps between requests, all of it bounded.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::permit_cache::PermitCache;

/// How many may listen to live events at once.
const LISTENERS_MAX: usize = 256;

/// What the API keeps between requests. None of it has to survive: another server goes on without it.
#[derive(Debug)]
pub struct ApiState {
    pub(super) granted: PermitCache,
    listeners: Arc<Semaphore>,
}

impl Default for ApiState {
    fn default() -> Self {
        Self { granted: PermitCache::default(), listeners: Arc::new(Semaphore::new(LISTENERS_MAX)) }
    }
}

impl ApiState {
    /// A place among those who listen; `None` if too many do.
    pub(super) fn listen(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.listeners).try_acquire_owned().ok()
    }
}
