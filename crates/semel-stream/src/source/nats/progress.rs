//! Tells the broker that events are still in work.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::AckKind;
use tokio::task::JoinHandle;

use super::line::Unsettled;

/// How many times in an `ack_wait`: one that is lost does no harm.
const TIMES: u32 = 3;

/// A task that ends with the line that it speaks on.
pub(super) struct Progress(JoinHandle<()>);

impl Progress {
    /// Speaks for every event of `unsettled`, until `at_most` after its delivery.
    pub(super) fn start(client: Client, unsettled: Unsettled, ack_wait: Duration, at_most: Duration) -> Self {
        Self(tokio::spawn(async move {
            let mut tick = tokio::time::interval((ack_wait / TIMES).max(Duration::from_millis(1)));
            loop {
                tick.tick().await;
                for reply in unsettled.delivered_within(at_most) {
                    // A line that is gone is found out by whoever reads on it.
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
