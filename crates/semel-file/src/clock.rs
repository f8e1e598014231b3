//! The store's clock: the clock that it was given, going on from the last moment in the log.

use std::sync::Arc;

use semel::clock::{Clock, Timestamp};

/// A clock that a machine clock set back between two processes can neither turn back nor stop.
#[derive(Clone)]
pub(crate) struct FlooredClock {
    clock: Arc<dyn Clock>,
    /// How far the last moment in the log was ahead of the clock when the store was opened.
    ahead_micros: u64,
}

impl FlooredClock {
    /// Starts at the clock's now, or at `floor` if that is later, and goes on as fast as the clock: a store that waited for
    /// the clock to catch up would let no lease lapse until then.
    pub(crate) fn new(clock: Arc<dyn Clock>, floor: Timestamp) -> Self {
        let ahead_micros = floor.as_micros().saturating_sub(clock.now().as_micros());
        Self { clock, ahead_micros }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock.now().as_micros().saturating_add(self.ahead_micros))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use semel_testkit::ManualClock;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn opened(clock_micros: u64, floor_micros: u64) -> (ManualClock, FlooredClock) {
        let clock = ManualClock::at(clock_micros);
        (clock.clone(), FlooredClock::new(Arc::new(clock), Timestamp::from_micros(floor_micros)))
    }

    #[test]
    fn a_clock_that_was_set_back_goes_on_from_the_floor_at_its_own_rate() {
        let (machine, clock) = opened(1_000, 3_600_001_000);
        assert_eq!(clock.now(), Timestamp::from_micros(3_600_001_000));
        machine.advance(Duration::from_secs(3));
        assert_eq!(clock.now(), Timestamp::from_micros(3_603_001_000));
        // Nothing jumps when the machine's clock passes the floor.
        machine.advance(HOUR);
        assert_eq!(clock.now(), Timestamp::from_micros(7_203_001_000));
    }

    #[test]
    fn a_clock_that_is_ahead_of_the_log_is_taken_as_it_is() {
        let (machine, clock) = opened(5_000, 1_000);
        assert_eq!(clock.now(), Timestamp::from_micros(5_000));
        machine.advance(HOUR);
        assert_eq!(clock.now(), Timestamp::from_micros(3_600_005_000));
    }
}
