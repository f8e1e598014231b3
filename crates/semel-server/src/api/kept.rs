//! What the API keeps between requests, all of it bounded.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::granted::Granted;

/// How many may listen to live events at once.
const LISTENERS_MAX: usize = 256;

/// What the API keeps between requests. None of it has to survive: another server goes on without it.
#[derive(Debug)]
pub struct Kept {
    pub(super) granted: Granted,
    listeners: Arc<Semaphore>,
}

impl Default for Kept {
    fn default() -> Self {
        Self { granted: Granted::default(), listeners: Arc::new(Semaphore::new(LISTENERS_MAX)) }
    }
}

impl Kept {
    /// A place among those who listen; `None` if too many do.
    pub(super) fn listen(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.listeners).try_acquire_owned().ok()
    }
}
