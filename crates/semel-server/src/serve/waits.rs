//! Requests that wait for something to happen, and the end of all waiting.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Requests that may wait at once, unless somebody says otherwise.
pub(super) const WAITING_MAX: usize = 8_192;

/// How many requests may wait, and whether the server is about to stop: then nobody waits any more.
#[derive(Debug)]
pub struct Waits {
    places: Arc<Semaphore>,
    max: usize,
    is_draining: watch::Sender<bool>,
}

/// A request that waits: one of as many as there may be.
#[derive(Debug)]
pub struct Waiting {
    _place: OwnedSemaphorePermit,
    is_draining: watch::Receiver<bool>,
}

impl Waits {
    /// So many may wait at once.
    pub fn new(max: usize) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(max)), max, is_draining: watch::Sender::new(false) }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.max.saturating_sub(self.places.available_permits())
    }

    /// A place to wait; `None` if too many wait already.
    pub fn enter(&self) -> Option<Waiting> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(Waiting { _place: place, is_draining: self.is_draining.subscribe() })
    }

    /// Whether the server is about to stop.
    pub fn is_draining(&self) -> bool {
        *self.is_draining.borrow()
    }

    /// Ends when the server is about to stop: for answers that would last for ever.
    pub async fn draining(&self) {
        until_draining(&mut self.is_draining.subscribe()).await;
    }

    /// Ends all waiting, also that which has not begun.
    pub fn drain(&self) {
        self.is_draining.send_replace(true);
    }
}

impl Waiting {
    /// Ends when there is no more time to wait: answer with what is known now.
    pub async fn cut_short(&mut self) {
        until_draining(&mut self.is_draining).await;
    }
}

impl Default for Waits {
    fn default() -> Self {
        Self::new(WAITING_MAX)
    }
}

async fn until_draining(is_draining: &mut watch::Receiver<bool>) {
    // An error means that the server is gone.
    let _ = is_draining.wait_for(|is_draining| *is_draining).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn as_many_wait_as_may_and_none_once_the_server_stops() {
        let waits = Waits::new(1);
        let mut one = waits.enter().expect("has room");
        assert!(waits.enter().is_none() && waits.waiting() == 1 && !waits.is_draining());
        waits.drain();
        one.cut_short().await;
        waits.draining().await;
        drop(one);
        waits.enter().expect("has room").cut_short().await;
    }
}
