//! How many requests are in flight, and no more than there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// How many requests are in flight.
#[derive(Debug)]
pub struct InFlight {
    count: AtomicUsize,
    max: usize,
    emptied: Notify,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct OneInFlight(Arc<InFlight>);

impl InFlight {
    /// At most so many.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { count: AtomicUsize::new(0), max, emptied: Notify::new() })
    }

    /// One more, unless there are too many.
    pub fn enter(self: &Arc<Self>) -> Option<OneInFlight> {
        let entered = self.enter_anyway();
        (self.count() <= self.max).then_some(entered)
    }

    /// One more, in place of one that was let in before.
    pub fn enter_anyway(self: &Arc<Self>) -> OneInFlight {
        self.count.fetch_add(1, Ordering::AcqRel);
        OneInFlight(Arc::clone(self))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until there are none.
    pub async fn emptied(&self) {
        loop {
            // Asked for before looking: a notice between the two is not missed.
            let emptied = self.emptied.notified();
            if self.count() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl Drop for OneInFlight {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_enters_while_it_is_full() {
        let in_flight = InFlight::new(1);
        let one = in_flight.enter().expect("has room");
        assert!(in_flight.enter().is_none());
        assert_eq!(in_flight.count(), 1, "whoever was turned away does not count");
        drop(one);
        in_flight.emptied().await;
        assert!(in_flight.enter().is_some());
    }
}
