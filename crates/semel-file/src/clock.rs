//! The store's clock: whatever clock it was given, but never below the last stamp in the log.

use std::sync::Arc;

use semel::clock::{Clock, Timestamp};

/// A clock that a machine set back cannot make repeat itself.
#[derive(Clone)]
pub(crate) struct FlooredClock {
    clock: Arc<dyn Clock>,
    floor: Timestamp,
}

impl FlooredClock {
    pub(crate) fn new(clock: Arc<dyn Clock>, floor: Timestamp) -> Self {
        Self { clock, floor }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().max(self.floor)
    }
}
