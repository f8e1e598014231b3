//! Waiting, with a bound: for a future, and for something that another process does.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Longer than anything takes in a test, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
const BETWEEN_CHECKS: Duration = Duration::from_millis(10);

/// The future's value; panics if it takes too long.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited {} s for {what}", PATIENCE.as_secs()))
}

/// Checks again and again until there is a value; panics if it takes too long.
pub async fn until<T>(what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let started_at = Instant::now();
    loop {
        if let Some(value) = check().await {
            return value;
        }
        assert!(started_at.elapsed() < PATIENCE, "waited {} s for {what}", PATIENCE.as_secs());
        sleep(BETWEEN_CHECKS).await;
    }
}

/// The same, without a runtime.
#[track_caller]
pub fn until_blocking<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PATIENCE.as_millis() / BETWEEN_CHECKS.as_millis() {
        if let Some(value) = check() {
            return value;
        }
        std::thread::sleep(BETWEEN_CHECKS);
    }
    panic!("waited {} s for {what}", PATIENCE.as_secs());
}
