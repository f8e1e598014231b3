//! Tells the broker that events are still in work.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::AckKind;
use tokio::task::JoinHandle;

use crate::connection::Unsettled;

/// How many times in an `ack_wait`: one that is lost does no harm.
const TIMES: u32 = 3;

/// A task that ends with the connection that it speaks on.
pub(crate) struct Progress(JoinHandle<()>);

impl Progress {
    /// Speaks for every event of `unsettled`, until `at_most` after its delivery.
    pub(crate) fn start(client: Client, unsettled: Unsettled, ack_wait: Duration, at_most: Duration) -> Self {
        Self(tokio::spawn(async move {
            let between = ack_wait.checked_div(TIMES).unwrap_or(ack_wait);
            let mut tick = tokio::time::interval(between.max(Duration::from_millis(1)));
            loop {
                tick.tick().await;
                for reply in unsettled.delivered_within(at_most) {
                    // A connection that is gone is found out by whoever reads on it.
                    let _ = client.publish(reply, AckKind::Progress.into()).await;
                }
            }
        }))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.abort();
    }
}
