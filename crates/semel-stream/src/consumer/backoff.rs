//! How long to wait before the next try.

use std::time::Duration;

use rand::RngExt;

/// How long to wait before the next try: doubling, up to a bound, and never quite the same for two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Before the second try.
    pub first: Duration,
    /// The longest.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(100), most: Duration::from_secs(30) }
    }
}

impl Backoff {
    /// How long to wait after so many tries: between half of the doubled span and all of it, so that those who failed
    /// together do not come back together.
    pub fn after(&self, tries: u32) -> Duration {
        let whole = self.whole(tries);
        whole.mul_f64(rand::rng().random_range(0.5..=1.0))
    }

    fn whole(&self, tries: u32) -> Duration {
        let doubled = 1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(doubled).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_bound_and_differ() {
        let backoff = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(1) };
        let whole: Vec<_> =
            [0, 1, 2, 3, 4, 5, 32, u32::MAX].map(|tries| backoff.whole(tries).as_millis()).into();
        assert_eq!(whole, [100, 100, 200, 400, 800, 1_000, 1_000, 1_000]);
        let waits: Vec<_> = (0..100).map(|_| backoff.after(3)).collect();
        assert!(waits.iter().all(|wait| (200..=400).contains(&wait.as_millis())));
        assert!(waits.iter().any(|wait| wait != &waits[0]), "jitter");
    }

    #[test]
    fn no_wait_overflows_whatever_was_chosen() {
        let backoff = Backoff { first: Duration::MAX, most: Duration::MAX };
        assert!(backoff.after(7) > Duration::ZERO);
        assert_eq!(Backoff { first: Duration::ZERO, most: Duration::ZERO }.after(9), Duration::ZERO);
    }
}
