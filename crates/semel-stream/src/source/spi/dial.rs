//! A connection attempt that outlives the caller that waits for it.

use std::fmt;
use std::future::Future;

use semel::{Error, ErrorKind, Result};

use crate::source::Pending;

/// At most one connection attempt, kept while its callers come and go.
///
/// Without it, a caller that drops its `fetch` after a short while would start to connect again and again, and never
/// get there.
pub struct Dial<C> {
    making: Option<Pending<'static, C>>,
    /// Whether there ever was a connection.
    was_made: bool,
}

impl<C> Dial<C> {
    /// No attempt yet.
    pub fn new() -> Self {
        Self { making: None, was_made: false }
    }

    /// Goes on with the attempt that is under way, or starts one. If this future is dropped, the attempt stays.
    ///
    /// An error of kind [`Invalid`](ErrorKind::Invalid) is final only until the first connection. After it, the same error
    /// becomes [`Unavailable`](ErrorKind::Unavailable), so that the caller tries again: a broker also calls a queue
    /// missing while the node that has it is down.
    pub async fn finish<F>(&mut self, start: impl FnOnce() -> F) -> Result<C>
    where
        F: Future<Output = Result<C>> + Send + 'static,
    {
        let made = self.making.get_or_insert_with(|| Box::pin(start())).as_mut().await;
        self.making = None;
        match made {
            Err(error) if self.was_made && error.kind() == ErrorKind::Invalid => {
                Err(Error::new(ErrorKind::Unavailable, error.to_string()))
            }
            made => {
                self.was_made |= made.is_ok();
                made
            }
        }
    }
}

impl<C> Default for Dial<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> fmt::Debug for Dial<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dial")
            .field("is_connecting", &self.making.is_some())
            .field("was_connected", &self.was_made)
            .finish()
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
            asked = asked.saturating_add(1);
            if let Ok(made) = timeout(Duration::from_millis(30), dial.finish(slowly)).await {
                break made.unwrap();
            }
        };
        assert_eq!((made, asked), (7, 4));
        // Control: started over each time, it is never there.
        assert!(timeout(Duration::from_millis(30), slowly()).await.is_err());
    }

    #[tokio::test]
    async fn a_refusal_is_final_only_before_the_first_connection() {
        let mut dial = Dial::new();
        let refused = || std::future::ready(Err::<u8, _>(Error::new(ErrorKind::Invalid, "no such queue")));
        assert_eq!(dial.finish(refused).await.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(dial.finish(|| std::future::ready(Ok(7))).await.unwrap(), 7);
        let later = dial.finish(refused).await.unwrap_err();
        assert_eq!((later.kind(), later.to_string().as_str()), (ErrorKind::Unavailable, "no such queue"));
    }
}
