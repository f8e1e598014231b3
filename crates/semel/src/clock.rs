//! Time as stores see it: a timestamp, and the clock that hands it out.

use std::fmt;
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

/// The machine's clock: the wall clock when it was made, and the machine's running time from there on.
///
/// It does not follow a wall clock that is set back or ahead meanwhile: a lease would last longer, or lapse while its
/// run is alive. Time during which the machine sleeps counts, on Linux; elsewhere the clock stands still for as long.
#[derive(Debug)]
pub struct SystemClock {
    anchor: Anchor,
}

/// Where the wall clock and the running time of the machine were tied together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Anchor {
    wall_micros: u64,
    running_micros: u64,
}

impl Anchor {
    /// The moment when the machine has run for so long. The wall clock has no say in it any more.
    fn moment_at(self, running_micros: u64) -> Timestamp {
        Timestamp(self.wall_micros.saturating_add(running_micros.saturating_sub(self.running_micros)))
    }
}

impl SystemClock {
    /// A clock that starts at the machine's present time.
    pub fn new() -> Self {
        Self::not_before(Timestamp::UNSTAMPED)
    }

    /// A clock that starts at the machine's present time, or at `floor` if that is later: as after a restart with a
    /// machine clock that was set back. It goes on from there.
    pub fn not_before(floor: Timestamp) -> Self {
        let wall_micros = wall_micros().max(floor.0);
        Self { anchor: Anchor { wall_micros, running_micros: running_micros() } }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.anchor.moment_at(running_micros())
    }
}

/// Never 0, which is no moment.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clocks")]
fn wall_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros).max(1)
}

/// How long the machine has run, sleep included: the monotonic clock would stand still while it sleeps, and everything
/// would be kept for longer by as much.
#[cfg(target_os = "linux")]
fn running_micros() -> u64 {
    let read = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(read.tv_sec).saturating_mul(1_000_000).saturating_add(part(read.tv_nsec) / 1_000)
}

/// How long this process has asked for the time.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clocks")]
fn running_micros() -> u64 {
    static STARTED: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    micros(STARTED.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_starts_at_its_floor_and_goes_on_from_there() {
        let floor = Timestamp::from_micros(u64::MAX / 2);
        let clock = SystemClock::not_before(floor);
        let first = clock.now();
        assert!(first >= floor && first.since(floor) < Duration::from_mins(1));
        while clock.now() == first {}
        assert!(clock.now() > first);
    }

    #[test]
    fn the_system_clock_starts_at_the_wall_clock() {
        let wall = Timestamp(wall_micros());
        let now = SystemClock::new().now();
        assert!(now >= wall && now.since(wall) < Duration::from_mins(1));
    }

    #[test]
    fn only_the_running_time_moves_the_clock_and_never_back() {
        let anchor = Anchor { wall_micros: 1_000_000, running_micros: 500 };
        for (running_micros, moment) in
            [(500, 1_000_000), (501, 1_000_001), (3_600_000_500, 3_601_000_000), (0, 1_000_000)]
        {
            assert_eq!(anchor.moment_at(running_micros), Timestamp(moment));
        }
        assert_eq!(Anchor { wall_micros: u64::MAX, running_micros: 0 }.moment_at(1), Timestamp(u64::MAX));
    }

    #[test]
    fn adding_a_span_never_wraps() {
        assert_eq!(Timestamp::from_micros(5).plus(Duration::MAX), Timestamp::from_micros(u64::MAX));
        assert_eq!(Timestamp::from_micros(5).since(Timestamp::from_micros(9)), Duration::ZERO);
    }
}
