//! A connection that is being made, kept while whoever waits for it goes away and comes again.

use std::future::Future;
use std::pin::Pin;

use semel::Result;

/// At most one connection in the making. Without it, a caller that drops its `fetch` ever so often would start to connect
/// again and again, and never get there.
pub(super) struct Dial<L>(Option<Pin<Box<dyn Future<Output = Result<L>> + Send>>>);

impl<L> Dial<L> {
    pub(super) fn new() -> Self {
        Self(None)
    }

    /// Goes on with what was started, or starts.
    pub(super) async fn finish<F>(&mut self, start: impl FnOnce() -> F) -> Result<L>
    where
        F: Future<Output = Result<L>> + Send + 'static,
    {
        let made = self.0.get_or_insert_with(|| Box::pin(start())).as_mut().await;
        self.0 = None;
        made
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    async fn slowly() -> Result<u8> {
        sleep(Duration::from_millis(100)).await;
        Ok(7)
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_gets_made_for_a_caller_that_never_waits_long() {
        let mut dial = Dial::new();
        let mut asked = 0_u32;
        let made = loop {
            asked += 1;
            if let Ok(made) = timeout(Duration::from_millis(30), dial.finish(slowly)).await {
                break made.unwrap();
            }
        };
        assert_eq!((made, asked), (7, 4));
        // Control: started over each time, it is never there.
        assert!(timeout(Duration::from_millis(30), slowly()).await.is_err());
    }
}
