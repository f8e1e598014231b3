//! Waking across processes: callers that wait here are woken when their record settles elsewhere.

use std::sync::Arc;
use std::time::Duration;

use semel::{RecordId, Result, Semel};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_postgres::Notification;

use crate::error::{Sent, error};
use crate::servers::{Servers, Sessions};
use crate::statement::CHANNEL;
use crate::store::PostgresStore;

/// How long a process counts as waiting after it last said so.
const WAITS_FOR: &str = "30 seconds";
/// How often it says so.
const SAID_EVERY: Duration = Duration::from_secs(10);
/// How long to wait before connecting again. Meanwhile, waiters look by themselves.
const CONNECT_AGAIN: Duration = Duration::from_secs(1);

/// Listens for as long as it is held.
#[must_use = "it stops listening once it is dropped"]
pub struct SettledListener {
    task: JoinHandle<()>,
}

impl Drop for SettledListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PostgresStore {
    /// Wakes the callers that wait in this engine as soon as another process settles their record (`LISTEN`/`NOTIFY`), for
    /// as long as the answer is held. Without it they look by themselves, up to a second late. Takes a connection
    /// while a caller waits. Through a pooler nothing can be listened for, and they look by themselves.
    pub fn wake_ups(&self, semel: &Semel) -> SettledListener {
        let listener = Listener {
            servers: Arc::clone(&self.connections.servers),
            semel: semel.clone(),
            waiting: semel.waiting(),
            process: uuid(),
        };
        SettledListener { task: tokio::spawn(listener.run()) }
    }
}

struct Listener {
    servers: Arc<Servers>,
    semel: Semel,
    waiting: watch::Receiver<usize>,
    process: String,
}

impl Listener {
    async fn run(mut self) {
        // An error means that the engine is gone, and no caller waits any more.
        while self.waiting.wait_for(|count| *count > 0).await.is_ok() {
            match self.listen().await {
                Ok(Listened::Once) => {}
                Ok(Listened::Never) => return,
                Err(error) => {
                    tracing::debug!(%error, "semel: not listening; callers that wait look by themselves");
                    tokio::time::sleep(CONNECT_AGAIN).await;
                }
            }
        }
    }

    /// Listens until no caller has waited for a while, or the connection is lost.
    async fn listen(&mut self) -> Result<Listened> {
        let (hear, mut heard) = mpsc::unbounded_channel();
        let hear = move |notification: &Notification| {
            if let Some(id) = id_of(notification.payload()) {
                hear.send(id).ok();
            }
        };
        let connected = self.servers.connect(hear).await?;
        if connected.sessions == Sessions::Pooled {
            tracing::debug!("semel: a pooler is in between; callers that wait look by themselves");
            return Ok(Listened::Never);
        }
        let client = connected.wire.client();
        let failed = |failed| error(failed, Sent::No);
        client.batch_execute(&format!("LISTEN {CHANNEL}")).await.map_err(failed)?;
        let say = format!(
            "INSERT INTO semel_waiters VALUES ('{0}', clock_timestamp() + interval '{WAITS_FOR}') \
             ON CONFLICT (process) DO UPDATE SET until = EXCLUDED.until",
            self.process
        );
        while *self.waiting.borrow() > 0 {
            client.batch_execute(&say).await.map_err(failed)?;
            let until = tokio::time::Instant::now().checked_add(SAID_EVERY);
            while let Some(until) = until {
                match tokio::time::timeout_at(until, heard.recv()).await {
                    Ok(Some(id)) => self.semel.wake(&id),
                    Ok(None) => return Ok(Listened::Once),
                    Err(_) => break,
                }
            }
        }
        let gone = format!("DELETE FROM semel_waiters WHERE process = '{}'", self.process);
        client.batch_execute(&gone).await.map_err(failed)?;
        Ok(Listened::Once)
    }
}

/// Whether to listen again.
enum Listened {
    /// The next time that a caller waits.
    Once,
    /// Never: nothing can be heard here.
    Never,
}

fn id_of(hex: &str) -> Option<RecordId> {
    let mut id = [0; 32];
    for (byte, digits) in id.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    (hex.len() == 64).then(|| RecordId::from_bytes(id))
}

/// A name for this process that no other has.
fn uuid() -> String {
    format!("{:032x}", rand::random::<u128>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_sent() {
        let id = semel::Key::new("charge", "order-7").unwrap().id();
        assert_eq!(id_of(&id.to_string()), Some(id));
        assert_eq!(id_of("zz"), None);
        assert_eq!(id_of(&id.to_string()[..62]), None);
    }
}
