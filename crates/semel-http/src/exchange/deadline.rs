//! The one timer of an exchange, set anew for whatever it waits for.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Stands for "never": farther away than any request lives, and a moment that every clock can express.
const FAR: Duration = Duration::from_hours(30 * 365 * 24);

/// A deadline that can be set anew. It costs nothing until something has to be waited for: what is ready at once never
/// makes a timer, and a whole exchange makes at most one.
#[derive(Debug, Default)]
pub(crate) struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
}

/// The deadline passed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elapsed;

impl Deadline {
    /// The output of `work`, if that comes before `until`. What is ready counts, however late it is.
    pub(crate) async fn limit<T>(
        &mut self,
        until: Instant,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Elapsed> {
        let mut is_set = false;
        poll_fn(|context| {
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            if !is_set {
                self.set(until);
                is_set = true;
            }
            self.poll_elapsed(context).map(|()| Err(Elapsed))
        })
        .await
    }

    /// Waits until this moment.
    pub(crate) async fn wait_until(&mut self, until: Instant) {
        self.set(until);
        poll_fn(|context| self.poll_elapsed(context)).await;
    }

    fn set(&mut self, until: Instant) {
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(until),
            None => self.timer = Some(Box::pin(sleep_until(until))),
        }
    }

    fn poll_elapsed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.timer.as_mut().map_or(Poll::Pending, |timer| timer.as_mut().poll(context))
    }
}

/// The moment that is this far away.
pub(crate) fn after(span: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(span.min(FAR)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_at_once_makes_no_timer() {
        let mut deadline = Deadline::default();
        assert_eq!(deadline.limit(after(Duration::ZERO), pin!(ready(7))).await, Ok(7));
        assert!(deadline.timer.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_timer_serves_deadlines_that_are_earlier_and_later_than_the_last() {
        let mut deadline = Deadline::default();
        for seconds in [5, 1, 60] {
            let started_at = Instant::now();
            let until = after(Duration::from_secs(seconds));
            assert_eq!(deadline.limit(until, pin!(pending::<()>())).await, Err(Elapsed));
            assert_eq!(started_at.elapsed().as_secs(), seconds);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_was_never_reached_does_not_end_the_next_wait() {
        let mut deadline = Deadline::default();
        let soon = after(Duration::from_secs(1));
        let slow = async { tokio::time::sleep(Duration::from_millis(500)).await };
        assert_eq!(deadline.limit(soon, pin!(slow)).await, Ok(()));
        let later = async { tokio::time::sleep(Duration::from_secs(5)).await };
        assert_eq!(deadline.limit(after(Duration::MAX), pin!(later)).await, Ok(()));
    }
}
