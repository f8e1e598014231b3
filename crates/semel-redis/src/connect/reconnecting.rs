//! One connection that many callers share, opened at its first use and again after it broke.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::RedisError;
use redis::aio::MultiplexedConnection;

use super::client::Connector;
use crate::config::Address;

/// A place for one connection.
#[derive(Default)]
pub(super) struct ReconnectingConnection {
    open: Mutex<Option<Opened>>,
    /// Held while one caller connects, so that the others wait for that one connection.
    opening: tokio::sync::Mutex<Option<RedisError>>,
    /// How often it was tried to connect.
    tries: AtomicU64,
}

/// A connection, and the generation that it belongs to.
#[derive(Clone)]
pub(super) struct Opened {
    pub(super) generation: u64,
    pub(super) connection: MultiplexedConnection,
}

impl ReconnectingConnection {
    /// The connection of this generation; opened now if there is none.
    pub(super) async fn connection(
        &self,
        connector: &Connector,
        address: &Address,
        generation: u64,
    ) -> Result<Opened, RedisError> {
        if let Some(opened) = self.opened(generation) {
            return Ok(opened);
        }
        let tries = self.tries.load(Ordering::Acquire);
        let mut failed = self.opening.lock().await;
        if let Some(opened) = self.opened(generation) {
            return Ok(opened);
        }
        // A caller that waited for a try that failed has its answer: trying one after the other would take each of them
        // longer than the one before it.
        if self.tries.load(Ordering::Acquire) > tries
            && let Some(error) = failed.as_ref()
        {
            return Err(error.clone());
        }
        let connected = connector.connect(address).await;
        self.tries.fetch_add(1, Ordering::AcqRel);
        match connected {
            Ok(connection) => {
                *failed = None;
                let opened = Opened { generation, connection };
                *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened.clone());
                Ok(opened)
            }
            Err(error) => {
                *failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Gives the connection up. It is closed when the last command in flight on it ends.
    pub(super) fn close(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn opened(&self, generation: u64) -> Option<Opened> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().filter(|opened| opened.generation == generation).cloned()
    }
}
