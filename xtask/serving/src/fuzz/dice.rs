//! Chance, from a seed: the same seed makes the same requests, as far as the answers are the same.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Chance.
pub(super) struct Dice(StdRng);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// Below so many.
    pub(super) fn below(&mut self, count: usize) -> usize {
        self.0.random_range(0..count.max(1))
    }

    /// True so often of a hundred times.
    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// One of these words.
    pub(super) fn word(&mut self, of: &[&str]) -> String {
        self.pick(of).copied().unwrap_or_default().to_owned()
    }

    /// So many hex digits, of few different values or of any.
    pub(super) fn hex(&mut self, digits: usize) -> String {
        let few = self.percent(70);
        let digit =
            |dice: &mut Self| char::from_digit(u32::try_from(dice.below(16)).unwrap_or(0), 16).unwrap_or('0');
        if few {
            return digit(self).to_string().repeat(digits);
        }
        (0..digits).map(|_| digit(self)).collect()
    }

    /// Any bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.0.random()).collect()
    }
}
