//! Connections of HTTP/1.1 that are idle, the freshest on top.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::link::Link;

/// Connections of HTTP/1.1 that are idle.
pub(super) struct Pool {
    idle: Mutex<Vec<Link>>,
    idle_max: usize,
    idle_timeout: Duration,
}

impl Pool {
    pub(super) fn new(idle_max: usize, idle_timeout: Duration) -> Self {
        Self { idle: Mutex::default(), idle_max, idle_timeout }
    }

    /// A connection that is still good, as far as this side can know.
    pub(super) fn take(&self) -> Option<Link> {
        loop {
            let link = self.links().pop()?;
            if link.idle_since().elapsed() >= self.idle_timeout {
                // Those below are older still.
                self.links().clear();
                return None;
            }
            if !link.is_dead() {
                return Some(link);
            }
        }
    }

    pub(super) fn put(&self, mut link: Link) {
        link.now_idle();
        let mut idle = self.links();
        if idle.len() < self.idle_max {
            idle.push(link);
        }
    }

    /// Closes what was idle for too long, or was closed by the other side.
    pub(super) fn tidy(&self) {
        let mut idle = self.links();
        let timeout = self.idle_timeout;
        let now = Instant::now();
        idle.retain(|link| now.duration_since(link.idle_since()) < timeout && !link.is_dead());
    }

    fn links(&self) -> std::sync::MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
