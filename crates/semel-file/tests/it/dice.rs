//! Chance that can be had again: every choice comes from one seed.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The choices of one seed, drawn one after the other.
#[derive(Debug)]
pub(crate) struct Dice(StdRng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A number from `least` to `most`, both included.
    pub(crate) fn number(&mut self, least: u64, most: u64) -> u64 {
        self.0.random_range(least..=most)
    }

    /// A place in something this long; its end counts as one.
    pub(crate) fn place(&mut self, most: usize) -> usize {
        self.0.random_range(0..=most)
    }

    /// Happens in so many of a hundred cases.
    pub(crate) fn happens(&mut self, percent: u64) -> bool {
        self.number(1, 100) <= percent
    }

    pub(crate) fn permit_id(&mut self) -> u128 {
        self.0.random()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.fill(bytes.as_mut_slice());
        bytes
    }
}
