//! Choices from a seed that is printed, so that a run can be had again as far as a machine repeats itself.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// One run's choices.
pub(crate) struct Dice(StdRng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A seed of its own for somebody else.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.random()
    }

    /// A number of 128 bits.
    pub(crate) fn wide(&mut self) -> u128 {
        self.0.random()
    }

    /// Happens in so many of a hundred cases.
    pub(crate) fn happens(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Below so many.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0.random_range(0..count.max(1))
    }

    /// Up to so many.
    pub(crate) fn number(&mut self, most: u64) -> u64 {
        self.0.random_range(0..=most)
    }

    /// Up to so long.
    pub(crate) fn instant(&mut self, most: Duration) -> Duration {
        most.mul_f64(self.0.random_range(0.0..=1.0))
    }

    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        things.shuffle(&mut self.0);
    }

    /// One of these.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// One of these words.
    pub(crate) fn word(&mut self, of: &[&str]) -> String {
        self.pick(of).copied().unwrap_or_default().to_owned()
    }

    /// So many hex digits, of few different values or of any.
    pub(crate) fn hex(&mut self, digits: usize) -> String {
        let few = self.happens(70);
        let digit =
            |dice: &mut Self| char::from_digit(u32::try_from(dice.below(16)).unwrap_or(0), 16).unwrap_or('0');
        if few {
            return digit(self).to_string().repeat(digits);
        }
        (0..digits).map(|_| digit(self)).collect()
    }

    /// Any bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.0.random()).collect()
    }
}
