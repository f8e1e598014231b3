//! A store's clock that follows tokio's, which tests can pause.

use semel::clock::{Clock, Timestamp};
use tokio::time::Instant;

pub(crate) struct TokioClock(Instant);

impl TokioClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_000_000).plus(self.0.elapsed())
    }
}
