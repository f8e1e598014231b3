//! How long something takes.

use std::time::{Duration, Instant};

/// Starts when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a stopwatch measures real time, and decides nothing")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// How many of so many things were done in a second.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
    pub(crate) fn rate(self, things: u64) -> f64 {
        things as f64 / self.elapsed().as_secs_f64().max(0.001)
    }
}
