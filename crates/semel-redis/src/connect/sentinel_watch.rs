//! Follows failovers as the sentinels announce them, without waiting for an error: a deposed master that can still be
//! reached acknowledges writes that are lost when it becomes a replica.
//!
//! Each sentinel publishes `+switch-master`, and all are asked every second: an announcement can be lost with its connection.
//! The task holds no more than a weak reference, and ends with the last clone of its store. If its runtime ends before
//! that, the next command starts it again on its own.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{join, join_all};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::client::Connector;
use super::topology::Topology;
use crate::config::Address;

/// How often the sentinels are asked.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long to wait before connecting again to a sentinel that cannot be heard.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long a sentinel may be silent before its connection is tested.
const SILENT_MAX: Duration = Duration::from_secs(5);
const CHANNEL: &str = "+switch-master";

/// The task that follows failovers, while there is a runtime for it.
#[derive(Default)]
pub(super) struct SentinelWatch {
    task: Mutex<Option<JoinHandle<()>>>,
}

impl SentinelWatch {
    /// Starts the task if it does not run: at first, and after the end of the runtime that it ran on.
    pub(super) fn ensure_running(&self, topology: &Arc<Topology>) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let Some(sentinels) = topology.sentinels() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        let (connector, addresses) =
            (sentinels.connector().clone(), sentinels.addresses().cloned().collect());
        *task = Some(runtime.spawn(follow(Arc::downgrade(topology), connector, addresses)));
    }
}

impl Drop for SentinelWatch {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

async fn follow(topology: Weak<Topology>, connector: Connector, addresses: Vec<Address>) {
    let heard = Notify::new();
    let listen = join_all(addresses.iter().map(|address| listen(&connector, address, &heard)));
    join(ask(&topology, &heard), listen).await;
}

/// Finds the master every second, and at every announcement.
async fn ask(topology: &Weak<Topology>, heard: &Notify) {
    loop {
        let _ = tokio::time::timeout(ASK_EVERY, heard.notified()).await;
        let Some(topology) = topology.upgrade() else { return };
        let known = topology.map();
        if let Err(failure) = topology.find_masters(&known, &[]).await {
            tracing::debug!(error = %semel::Error::from(failure), "semel: the sentinels could not be asked");
        }
    }
}

/// Passes on every announcement of one sentinel.
async fn listen(connector: &Connector, address: &Address, heard: &Notify) {
    loop {
        if let Ok(connection) = connector.subscribe(address, CHANNEL).await {
            // What was announced while there was no connection.
            heard.notify_one();
            let (mut commands, mut announcements) = connection.split();
            loop {
                match tokio::time::timeout(SILENT_MAX, announcements.next()).await {
                    Ok(Some(_)) => heard.notify_one(),
                    Ok(None) => break,
                    Err(_) => {
                        let pong = tokio::time::timeout(SILENT_MAX, commands.ping::<redis::Value>()).await;
                        if !matches!(pong, Ok(Ok(_))) {
                            break;
                        }
                    }
                }
            }
        }
        tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
    }
}
