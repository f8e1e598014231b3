//! Choices from a seed that is printed, so that a run can be had again as far as a machine repeats itself.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// One run's choices.
pub(super) struct Dice(StdRng);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A seed of its own for somebody else.
    pub(super) fn seed(&mut self) -> u64 {
        self.0.random()
    }

    /// Happens in so many of a hundred cases.
    pub(super) fn happens(&mut self, percent: u8) -> bool {
        self.0.random_range(0..100) < percent
    }

    pub(super) fn number(&mut self, most: u64) -> u64 {
        self.0.random_range(0..=most)
    }

    /// Up to so long.
    pub(super) fn instant(&mut self, most: Duration) -> Duration {
        most.mul_f64(self.0.random_range(0.0..=1.0))
    }

    pub(super) fn shuffle<T>(&mut self, things: &mut [T]) {
        things.shuffle(&mut self.0);
    }
}
