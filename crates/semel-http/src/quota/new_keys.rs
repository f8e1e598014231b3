//! The keys of a caller that were new within the last minute. Each counts once, however often it is sent.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use semel::RecordId;
use tokio::time::Instant;

use super::amounts::NEVER;

/// How long a key counts as new.
pub(super) const MINUTE: Duration = Duration::from_mins(1);

/// The keys that were new within the last minute: no more than the quota allows, and those in flight.
#[derive(Debug, Default)]
pub(super) struct NewKeys {
    /// In the order in which they came, with when they no longer count.
    order: VecDeque<(Instant, KeyPrefix)>,
    counted: HashSet<KeyPrefix>,
}

/// The first half of a record's id. Two keys of one caller that share it would count as one, which takes 2^64 tries.
type KeyPrefix = [u8; 16];

fn prefix(key: RecordId) -> KeyPrefix {
    let mut prefix = KeyPrefix::default();
    for (to, from) in prefix.iter_mut().zip(key.as_bytes()) {
        *to = *from;
    }
    prefix
}

impl NewKeys {
    /// Counts a key, if it does not count already.
    pub(super) fn add(&mut self, key: RecordId, now: Instant) {
        self.forget(now);
        let key = prefix(key);
        if self.counted.insert(key) {
            self.order.push_back((now.checked_add(MINUTE).unwrap_or(now), key));
        }
    }

    /// Forgets the keys that are no longer new.
    pub(super) fn forget(&mut self, now: Instant) {
        while let Some((until, key)) = self.order.front()
            && *until <= now
        {
            self.counted.remove(key);
            self.order.pop_front();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether this key would be one too many, and after how long it would not be.
    pub(super) fn is_over(&self, key: RecordId, most: u64, now: Instant) -> Option<Duration> {
        if self.counted.contains(&prefix(key)) {
            return None;
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        // Enough of the oldest must be gone that one more fits.
        let surplus = self.order.len().checked_sub(most)?;
        let gone_at = self.order.get(surplus).map(|(until, _)| until.saturating_duration_since(now));
        Some(gone_at.unwrap_or(NEVER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> RecordId {
        RecordId::from_bytes([number; 32])
    }

    #[test]
    fn a_key_counts_once_for_a_minute_from_when_it_was_first_seen() {
        let (mut keys, start) = (NewKeys::default(), Instant::now());
        let half = MINUTE / 2;
        keys.add(key(1), start);
        keys.add(key(1), start + half);
        assert_eq!(keys.is_over(key(2), 2, start + half), None);
        assert_eq!(keys.is_over(key(2), 1, start + half), Some(half));
        // The key itself may be sent again.
        assert_eq!(keys.is_over(key(1), 1, start + half), None);
        keys.forget(start + MINUTE);
        assert!(keys.is_empty() && keys.counted.is_empty());
    }

    #[test]
    fn the_wait_is_until_enough_are_gone() {
        let (mut keys, start) = (NewKeys::default(), Instant::now());
        let second = Duration::from_secs(1);
        for number in 0..5 {
            keys.add(key(number), start + second * u32::from(number));
        }
        let now = start + second * 4;
        assert_eq!(keys.is_over(key(9), 5, now), Some(Duration::from_secs(56)));
        assert_eq!(keys.is_over(key(9), 3, now), Some(Duration::from_secs(58)));
        assert_eq!(keys.is_over(key(9), 6, now), None);
        assert_eq!(keys.is_over(key(9), 0, now), Some(NEVER));
        assert_eq!(NewKeys::default().is_over(key(9), 0, now), Some(NEVER));
    }
}
