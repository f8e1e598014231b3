//! How often a caller may ask.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many asks a second a caller may make. Counts in this process alone.
///
/// A bucket that refills evenly, kept as one moment: when it would be full again. Asks that find enough in it move that
/// moment on, and nothing has to be added to it in between.
#[derive(Debug, Default)]
pub struct Quota(Option<Bucket>);

#[derive(Debug)]
struct Bucket {
    /// How long one ask takes to come back.
    each: Duration,
    burst: u32,
    full_at: Mutex<Instant>,
}

impl Quota {
    /// As often as it likes.
    pub fn none() -> Self {
        Self(None)
    }

    /// So many asks a second, and so many at once after a pause. Neither can be less than one.
    pub fn per_second(asks: u32, burst: u32) -> Self {
        let each = Duration::from_secs(1).checked_div(asks.max(1)).unwrap_or(Duration::from_secs(1));
        Self(Some(Bucket { each, burst: burst.max(1), full_at: Mutex::new(Instant::now()) }))
    }

    /// Takes so many asks, or says how long to wait.
    ///
    /// More than there can ever be at once are let in when the bucket is full, and paid for afterwards: a batch that is larger than
    /// the burst would otherwise never come through.
    pub fn take(&self, asks: u64) -> Result<(), Duration> {
        self.0.as_ref().map_or(Ok(()), |bucket| bucket.take(u32::try_from(asks).unwrap_or(u32::MAX)))
    }
}

impl Bucket {
    fn take(&self, asks: u32) -> Result<(), Duration> {
        let now = Instant::now();
        let spare = self.each.saturating_mul(self.burst.saturating_sub(asks.min(self.burst)));
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = full_at.saturating_duration_since(now);
        if let Some(wait) = missing.checked_sub(spare).filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        let from = (*full_at).max(now);
        *full_at = from.checked_add(self.each.saturating_mul(asks)).unwrap_or(from);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_let_in_and_then_as_many_as_come_back() {
        let quota = Quota::per_second(10, 3);
        for _ in 0..3 {
            assert_eq!(quota.take(1), Ok(()));
        }
        assert_eq!(quota.take(1), Err(Duration::from_millis(100)));
        tokio::time::advance(Duration::from_millis(100)).await;
        assert_eq!((quota.take(1), quota.take(1)), (Ok(()), Err(Duration::from_millis(100))));
        tokio::time::advance(Duration::from_hours(1)).await;
        let admitted = (0..10).filter(|_| quota.take(1).is_ok()).count();
        assert_eq!(admitted, 3, "a long pause earns no more than the burst");
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_larger_than_the_burst_is_let_in_and_paid_for() {
        let quota = Quota::per_second(10, 2);
        assert_eq!(quota.take(20), Ok(()));
        assert_eq!(quota.take(1), Err(Duration::from_millis(1_900)));
        tokio::time::advance(Duration::from_millis(1_900)).await;
        assert_eq!(quota.take(1), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_no_quota_is_never_told_to_wait() {
        let quota = Quota::none();
        assert!((0..1_000).all(|_| quota.take(u64::MAX).is_ok()));
    }
}
