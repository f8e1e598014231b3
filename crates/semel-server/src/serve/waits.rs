//! Requests that wait for something to happen, and the end of all waiting.

use std::sync::Arc;

use semel_listen::{Phase, phase};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Requests that may wait at once, unless somebody says otherwise.
pub(super) const WAITING_MAX: usize = 8_192;

/// How many requests may wait, and whether the server is about to stop: then nobody waits any more.
#[derive(Debug)]
pub struct Waits {
    places: Arc<Semaphore>,
    max: usize,
    phase: watch::Sender<Phase>,
}

/// A request that waits: one of as many as there may be.
#[derive(Debug)]
pub struct Waiting {
    _place: OwnedSemaphorePermit,
    phase: watch::Receiver<Phase>,
}

impl Waits {
    /// So many may wait at once.
    pub fn new(max: usize) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(max)), max, phase: watch::Sender::default() }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.max.saturating_sub(self.places.available_permits())
    }

    /// A place to wait; `None` if too many wait already.
    pub fn enter(&self) -> Option<Waiting> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(Waiting { _place: place, phase: self.phase.subscribe() })
    }

    /// Whether the server was told to stop. It may still serve everything.
    pub fn is_leaving(&self) -> bool {
        *self.phase.borrow() >= Phase::Leaving
    }

    /// Whether nothing new is taken.
    pub fn is_draining(&self) -> bool {
        *self.phase.borrow() >= Phase::Draining
    }

    /// Ends when nothing new is taken: for answers that would last for ever.
    pub async fn draining(&self) {
        phase::reached(&mut self.phase.subscribe(), Phase::Draining).await;
    }

    /// The server was told to stop, and still serves everything.
    pub fn leave(&self) {
        self.phase.send_replace(Phase::Leaving);
    }

    /// Ends all waiting, also that which has not begun.
    pub fn drain(&self) {
        self.phase.send_replace(Phase::Draining);
    }
}

impl Waiting {
    /// Ends when there is no more time to wait: answer with what is known now.
    pub async fn cut_short(&mut self) {
        phase::reached(&mut self.phase, Phase::Draining).await;
    }
}

impl Default for Waits {
    fn default() -> Self {
        Self::new(WAITING_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn as_many_wait_as_may_and_none_once_the_server_stops() {
        let waits = Waits::new(1);
        let mut one = waits.enter().expect("has room");
        waits.leave();
        assert!(
            waits.enter().is_none() && waits.waiting() == 1 && waits.is_leaving() && !waits.is_draining()
        );
        waits.drain();
        one.cut_short().await;
        waits.draining().await;
        drop(one);
        waits.enter().expect("has room").cut_short().await;
    }
}
