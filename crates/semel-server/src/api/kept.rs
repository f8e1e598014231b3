//! What the API keeps between requests, all of it bounded.

use tokio::sync::{Semaphore, SemaphorePermit};

use super::granted::Granted;

/// How many requests may wait for somebody else's run at once.
const WAITING_MAX: usize = 16_384;

/// What the API keeps between requests. None of it has to survive: another server goes on without it.
#[derive(Debug)]
pub struct Kept {
    pub(super) granted: Granted,
    waiting: Semaphore,
}

impl Default for Kept {
    fn default() -> Self {
        Self { granted: Granted::default(), waiting: Semaphore::new(WAITING_MAX) }
    }
}

impl Kept {
    /// A place among those who wait; `None` if too many do, and this request is answered at once instead.
    pub(super) fn wait(&self) -> Option<SemaphorePermit<'_>> {
        self.waiting.try_acquire().ok()
    }
}
