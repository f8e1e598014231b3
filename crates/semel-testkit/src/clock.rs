//! A clock that a test moves by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use semel::clock::{Clock, Timestamp};

/// A clock that stands still until a test moves it, and never goes backwards. Clones share one time.
///
/// ```
/// use std::time::Duration;
/// use semel::clock::Clock;
/// use semel::store::MemoryStore;
/// use semel_testkit::ManualClock;
///
/// let clock = ManualClock::at(1_000);
/// let store = MemoryStore::builder().clock(clock.clone()).build();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().as_micros(), 60_001_000);
/// # let _ = store;
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    micros: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at this many microseconds; at one, if told zero, which no clock may read.
    pub fn at(micros: u64) -> Self {
        Self { micros: Arc::new(AtomicU64::new(micros.max(1))) }
    }

    /// Moves on by `span`.
    pub fn advance(&self, span: Duration) {
        let step = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let order = Ordering::SeqCst;
        let _ = self.micros.fetch_update(order, order, |micros| Some(micros.saturating_add(step)));
    }

    /// Moves on to `moment`; stays where it is if that has passed.
    pub fn set(&self, moment: Timestamp) {
        self.micros.fetch_max(moment.as_micros(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::SeqCst))
    }
}
