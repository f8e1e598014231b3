//! The lease while work runs: renewed at a third of it, and the work told when it is lost.

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use super::permit::Permit;
use crate::error::ErrorKind;

/// Keeps a lease until it is dropped. Dropping it does not release the permit.
#[must_use = "the lease is renewed only while this lives"]
pub struct Heartbeat {
    task: Option<JoinHandle<()>>,
}

impl Permit {
    /// Renews the lease at a third of it, until the heartbeat is dropped or the permit is lost.
    pub fn heartbeat(&self) -> Heartbeat {
        if self.is_unprotected() {
            return Heartbeat { task: None };
        }
        let permit = self.clone();
        Heartbeat { task: Some(tokio::spawn(beat(permit).in_current_span())) }
    }
}

async fn beat(permit: Permit) {
    let third = permit.lease().div_f64(3.0);
    let soon = third.div_f64(8.0);
    loop {
        let now = Instant::now();
        let due = permit.good_until().checked_sub(third.saturating_mul(2)).unwrap_or(now);
        // After a failed renewal the due moment is past: try again soon, not at once.
        sleep_until(due.max(now.checked_add(soon).unwrap_or(now))).await;
        match permit.renew().await {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Lost => return,
            Err(error) => {
                tracing::warn!(key = %permit.key().id().short(), %error, "semel: the lease was not renewed");
            }
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        // A renewal in flight is driven by a task of its own and is not cancelled with this one.
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
