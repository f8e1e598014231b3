//! Amounts that are gone after a span, in coarse buckets: many records, few numbers.

use std::time::Duration;

use semel::RETENTION_MAX;
use tokio::time::Instant;

/// Into how many buckets a span is cut: an amount may count for that part of its span too long.
const BUCKETS_A_SPAN: u32 = 64;
/// The most buckets, however many different spans there are.
const BUCKETS_MAX: usize = 256;
/// When it is worth asking again for whoever may have nothing at all.
pub(super) const NEVER: Duration = Duration::from_hours(1);

/// Amounts, each gone at a moment of its own.
#[derive(Debug, Default)]
pub(super) struct Amounts {
    /// By when they are gone.
    buckets: Vec<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    gone_at: Instant,
    amount: u64,
}

impl Amounts {
    /// Adds an amount that is gone after `span`, or a little later.
    pub(super) fn add(&mut self, amount: u64, span: Duration, now: Instant) {
        // No record is remembered for longer, and a clock has no word for every span.
        let span = span.min(RETENTION_MAX);
        let width = span.checked_div(BUCKETS_A_SPAN).unwrap_or_default();
        let gone_at = now.checked_add(span).and_then(|at| at.checked_add(width)).unwrap_or(now);
        let earliest = gone_at.checked_sub(width).unwrap_or(gone_at);
        let at = self.buckets.partition_point(|bucket| bucket.gone_at < earliest);
        match self.buckets.get_mut(at) {
            Some(bucket) if bucket.gone_at <= gone_at => bucket.amount = bucket.amount.saturating_add(amount),
            _ => self.buckets.insert(at, Bucket { gone_at, amount }),
        }
        if self.buckets.len() > BUCKETS_MAX {
            self.merge_two();
        }
    }

    /// Takes back one that was added at `added_at` for `span`.
    pub(super) fn subtract_one(&mut self, span: Duration, added_at: Instant) {
        let gone_at = added_at.checked_add(span.min(RETENTION_MAX)).unwrap_or(added_at);
        let at = self.buckets.partition_point(|bucket| bucket.gone_at < gone_at);
        if let Some(bucket) = self.buckets.get_mut(at) {
            bucket.amount = bucket.amount.saturating_sub(1);
            if bucket.amount == 0 {
                self.buckets.remove(at);
            }
        }
    }

    /// Makes one of the first two: what is gone next stays until what is gone after it.
    fn merge_two(&mut self) {
        let first = self.buckets.remove(0);
        if let Some(second) = self.buckets.first_mut() {
            second.amount = second.amount.saturating_add(first.amount);
        }
    }

    /// Forgets what is gone.
    pub(super) fn forget(&mut self, now: Instant) {
        let gone = self.buckets.partition_point(|bucket| bucket.gone_at <= now);
        if gone > 0 {
            self.buckets.drain(..gone);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Whether there is no room for more below `most`, and after how long there is.
    pub(super) fn is_over(&self, most: u64, now: Instant) -> Option<Duration> {
        let mut left = self.buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.amount));
        if left < most {
            return None;
        }
        for bucket in &self.buckets {
            left = left.saturating_sub(bucket.amount);
            if left < most {
                return Some(bucket.gone_at.saturating_duration_since(now));
            }
        }
        Some(NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(640);

    #[test]
    fn an_amount_counts_for_its_span_and_little_longer() {
        let start = Instant::now();
        let mut amounts = Amounts::default();
        amounts.add(1, SPAN, start);
        amounts.forget(start + SPAN);
        assert!(!amounts.is_empty());
        amounts.forget(start + SPAN + SPAN / BUCKETS_A_SPAN);
        assert!(amounts.is_empty());
    }

    #[test]
    fn a_million_records_take_few_buckets_and_none_is_lost_early() {
        let start = Instant::now();
        let mut amounts = Amounts::default();
        for n in 0..1_000_000_u32 {
            amounts.add(1, SPAN, start + SPAN * n / 1_000_000);
        }
        assert!(amounts.buckets.len() <= BUCKETS_A_SPAN as usize + 2, "{}", amounts.buckets.len());
        assert_eq!(amounts.is_over(1_000_001, start), None);
        assert!(amounts.is_over(1_000_000, start).is_some());
        // After half a span more, at least the younger half is still there, and little more than it.
        let later = start + SPAN + SPAN / 2;
        amounts.forget(later);
        assert!(amounts.is_over(500_000, later).is_some());
        assert_eq!(amounts.is_over(550_000, later), None);
    }

    #[test]
    fn what_is_taken_back_no_longer_counts_and_everything_else_does() {
        let start = Instant::now();
        let mut amounts = Amounts::default();
        let added = |n: u32| start + SPAN * n / 500;
        for n in 0..1_000 {
            amounts.add(1, SPAN, added(n));
        }
        for n in (0..1_000).step_by(2) {
            amounts.subtract_one(SPAN, added(n));
        }
        assert!(amounts.is_over(500, start).is_some());
        assert_eq!(amounts.is_over(501, start), None);
        for n in (1..1_000).step_by(2) {
            amounts.subtract_one(SPAN, added(n));
        }
        assert!(amounts.is_empty());
        amounts.subtract_one(SPAN, start);
        assert!(amounts.is_empty());
    }

    #[test]
    fn a_short_span_is_not_kept_for_a_long_one() {
        let start = Instant::now();
        let mut amounts = Amounts::default();
        amounts.add(1, SPAN * 100, start);
        amounts.add(1, SPAN, start);
        amounts.forget(start + SPAN * 2);
        assert_eq!(amounts.is_over(2, start), None);
        assert!(amounts.is_over(1, start).is_some());
    }

    #[test]
    fn many_different_spans_are_bounded_too() {
        let start = Instant::now();
        let mut amounts = Amounts::default();
        for n in 1..100_000_u32 {
            amounts.add(1, Duration::from_millis(u64::from(n.wrapping_mul(7_919) % 86_400_000)), start);
        }
        assert!(amounts.buckets.len() <= BUCKETS_MAX, "{}", amounts.buckets.len());
        assert!(amounts.is_over(99_999, start).is_some(), "merging lost some");
        assert!(amounts.buckets.is_sorted_by_key(|bucket| bucket.gone_at));
    }

    #[test]
    fn the_wait_is_until_enough_is_gone() {
        let start = Instant::now();
        let mut amounts = Amounts::default();
        amounts.add(1, SPAN, start);
        amounts.add(5, SPAN, start + SPAN / 2);
        let width = SPAN / BUCKETS_A_SPAN;
        assert_eq!(amounts.is_over(6, start), Some(SPAN + width));
        assert_eq!(amounts.is_over(5, start), Some(SPAN + width + SPAN / 2));
        assert_eq!(amounts.is_over(7, start), None);
        assert_eq!(amounts.is_over(0, start), Some(NEVER));
        assert_eq!(Amounts::default().is_over(0, start), Some(NEVER));
    }

    #[test]
    fn amounts_past_counting_stay_at_the_most() {
        let start = Instant::now();
        let mut amounts = Amounts::default();
        amounts.add(u64::MAX, SPAN, start);
        amounts.add(u64::MAX, SPAN, start);
        assert!(amounts.is_over(u64::MAX, start).is_some());
        let mut amounts = Amounts::default();
        amounts.add(1, Duration::MAX, start);
        assert!(amounts.is_over(1, start).unwrap() >= RETENTION_MAX);
    }
}
