//! Time as stores see it: a timestamp, and the clock that hands it out.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment on a store's clock, in microseconds since the Unix epoch.
///
/// Two timestamps are comparable only if the same store stamped them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The moment a draft leaves open, for the store to fill in. No clock ever reads it.
    pub(crate) const UNSTAMPED: Self = Self(0);

    /// The moment `micros` microseconds after the Unix epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This moment and `span` later; stays at the far end of time instead of wrapping.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// How long after `earlier` this moment is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    pub(crate) const fn is_unstamped(self) -> bool {
        self.0 == Self::UNSTAMPED.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} µs", self.0)
    }
}

/// A span in whole microseconds, the resolution that every store keeps.
pub(crate) fn micros(span: Duration) -> u64 {
    // Without the 128-bit division of `as_micros`: this is on every path.
    span.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(span.subsec_micros()))
}

/// Where a store that runs in this process gets its time from. Must never run backwards.
pub trait Clock: Send + Sync + 'static {
    /// The present moment: never earlier than any moment handed out before.
    fn now(&self) -> Timestamp;
}

/// The machine's wall clock, held back from ever running backwards.
#[derive(Debug, Default)]
pub struct SystemClock {
    latest_micros: AtomicU64,
}

impl SystemClock {
    /// A clock that starts at the machine's present time.
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock that never reads earlier than `floor`, as after a restart with a machine clock set back.
    pub fn not_before(floor: Timestamp) -> Self {
        Self { latest_micros: AtomicU64::new(floor.0) }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        let read = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros).max(1);
        let latest = self.latest_micros.load(Ordering::Relaxed);
        // Most reads advance the clock by less than anyone can tell; the store is only worth its
        // contended cache line when time moved.
        if read <= latest {
            return Timestamp(latest);
        }
        Timestamp(self.latest_micros.fetch_max(read, Ordering::Relaxed).max(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_never_reads_below_its_floor() {
        let floor = Timestamp::from_micros(u64::MAX - 10);
        let clock = SystemClock::not_before(floor);
        assert_eq!(clock.now(), floor);
        assert_eq!(clock.now(), floor);
    }

    #[test]
    fn adding_a_span_never_wraps() {
        assert_eq!(Timestamp::from_micros(5).plus(Duration::MAX), Timestamp::from_micros(u64::MAX));
        assert_eq!(Timestamp::from_micros(5).since(Timestamp::from_micros(9)), Duration::ZERO);
    }
}
