//! Waiting: for what must come soon, and for what another process does.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Longer than anything takes here, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// What comes of the future, which must come.
#[track_caller]
pub(crate) fn soon<T>(what: &str, future: impl Future<Output = T>) -> impl Future<Output = T> {
    let what = what.to_owned();
    async move {
        let done = timeout(PATIENCE, future).await;
        done.unwrap_or_else(|_| panic!("waited {} s for {what}", PATIENCE.as_secs()))
    }
}

/// Looks again and again until there is something to see.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let started_at = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(started_at.elapsed() < PATIENCE, "waited {} s for {what}", PATIENCE.as_secs());
        sleep(BETWEEN_LOOKS).await;
    }
}
