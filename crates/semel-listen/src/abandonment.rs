//! How many of a connection's requests its client gives up. With HTTP/2 that takes nine bytes, and may leave work behind.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many requests a client may give up in one second, whatever it does otherwise: as many as it may have at once.
const PER_SECOND_MAX: u64 = 128;
/// The bits of each count.
const COUNT_BITS: u32 = 20;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;

/// Requests of the current second, and how many of them were given up. Packed: the second, then the two counts.
#[derive(Debug, Default)]
pub(crate) struct Abandonment(AtomicU64);

impl Abandonment {
    /// Counts one more request. `false` if the client gives up most of them, and many: then nothing is to be begun for it before
    /// the next second. A client that passes on the requests of many others gives up some of them, and is served.
    pub(crate) fn begin(&self, second: u64) -> bool {
        let mut has_room = true;
        self.update(second, |requests, abandoned| {
            has_room = abandoned < PER_SECOND_MAX || abandoned.saturating_mul(2) < requests;
            (requests.saturating_add(u64::from(has_room)), abandoned)
        });
        has_room
    }

    /// Counts one that was given up.
    pub(crate) fn abandon(&self, second: u64) {
        self.update(second, |requests, abandoned| (requests, abandoned.saturating_add(1)));
    }

    fn update(&self, second: u64, mut change: impl FnMut(u64, u64) -> (u64, u64)) {
        let changed = |packed: u64| {
            let is_current = packed >> (2 * COUNT_BITS) == second & ((1 << (64 - 2 * COUNT_BITS)) - 1);
            let counts = if is_current { packed } else { 0 };
            let (requests, abandoned) = change((counts >> COUNT_BITS) & COUNT_MAX, counts & COUNT_MAX);
            let counts = requests.min(COUNT_MAX) << COUNT_BITS | abandoned.min(COUNT_MAX);
            Some(second << (2 * COUNT_BITS) | counts)
        };
        // The closure always has an answer.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_gives_up_everything_is_served_again_in_the_next_second() {
        let abandonment = Abandonment::default();
        let begun = (0..1_000).filter(|_| {
            let begun = abandonment.begin(7);
            abandonment.abandon(7);
            begun
        });
        assert_eq!(begun.count(), usize::try_from(PER_SECOND_MAX).unwrap());
        assert!(!abandonment.begin(7));
        assert!(abandonment.begin(8));
    }

    #[test]
    fn a_client_that_gives_up_a_third_is_served() {
        let abandonment = Abandonment::default();
        for n in 0..10_000 {
            assert!(abandonment.begin(7), "{n}");
            if n % 3 == 0 {
                abandonment.abandon(7);
            }
        }
    }
}
