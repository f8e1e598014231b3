//! Time as stores see it: a timestamp, and the clock that hands it out.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

/// How often the machine's wall clock is looked at for having gone ahead.
const LOOK_AGAIN_MICROS: u64 = 1_000_000;

/// The machine's wall clock, held back from ever running backwards.
///
/// It counts on the machine's monotonic clock, which needs no memory of what was handed out before: one that every
/// read writes would have to move between all cores that read. What the wall clock gained meanwhile (the machine slept,
/// or its time was set forward) is caught up with once a second.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    /// The wall clock when this one started, by the latest look at it. Only grows.
    started_micros: AtomicU64,
    /// How long after the start that look was.
    looked_micros: AtomicU64,
    floor_micros: u64,
}

impl SystemClock {
    /// A clock that starts at the machine's present time.
    pub fn new() -> Self {
        Self::not_before(Timestamp::UNSTAMPED)
    }

    /// A clock that never reads earlier than `floor`, as after a restart with a machine clock set back.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clocks")]
    pub fn not_before(floor: Timestamp) -> Self {
        Self {
            started: Instant::now(),
            started_micros: AtomicU64::new(wall_micros()),
            looked_micros: AtomicU64::new(0),
            floor_micros: floor.0,
        }
    }

    /// Catches up with a wall clock that went ahead; one that was set back is not followed.
    #[cold]
    fn look_again(&self, elapsed_micros: u64) {
        self.looked_micros.fetch_max(elapsed_micros, Ordering::Relaxed);
        self.started_micros.fetch_max(wall_micros().saturating_sub(elapsed_micros), Ordering::Relaxed);
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let elapsed_micros = micros(self.started.elapsed());
        if elapsed_micros.saturating_sub(self.looked_micros.load(Ordering::Relaxed)) >= LOOK_AGAIN_MICROS {
            self.look_again(elapsed_micros);
        }
        let read = self.started_micros.load(Ordering::Relaxed).saturating_add(elapsed_micros);
        Timestamp(read.max(self.floor_micros))
    }
}

/// Never 0, which is no moment.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clocks")]
fn wall_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros).max(1)
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
    fn the_system_clock_catches_up_with_a_wall_clock_that_went_ahead_and_follows_none_back() {
        let clock = SystemClock::new();
        let before = clock.now();
        clock.started_micros.fetch_sub(5_000_000, Ordering::Relaxed);
        assert!(clock.now() < before);
        clock.look_again(micros(clock.started.elapsed()));
        // The first look at the wall clock may itself have taken a while, which the second one makes good.
        assert!(clock.now().plus(Duration::from_secs(1)) >= before);
        let ahead = before.plus(Duration::from_mins(1));
        clock.started_micros.fetch_add(60_000_000, Ordering::Relaxed);
        clock.look_again(micros(clock.started.elapsed()));
        assert!(clock.now() >= ahead);
    }

    #[test]
    fn adding_a_span_never_wraps() {
        assert_eq!(Timestamp::from_micros(5).plus(Duration::MAX), Timestamp::from_micros(u64::MAX));
        assert_eq!(Timestamp::from_micros(5).since(Timestamp::from_micros(9)), Duration::ZERO);
    }
}
