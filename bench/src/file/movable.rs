//! A clock that stands still until it is moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use semel::clock::{Clock, SystemClock, Timestamp};

/// Starts at the present time; every copy shows the same.
#[derive(Clone)]
pub(super) struct MovableClock(Arc<AtomicU64>);

impl MovableClock {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(SystemClock::new().now().as_micros())))
    }

    /// Moves it ahead.
    pub(super) fn pass(&self, span: Duration) {
        self.0.fetch_add(u64::try_from(span.as_micros()).unwrap_or(0), Ordering::SeqCst);
    }
}

impl Clock for MovableClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}
