//! Asks until there is an answer: a server that is gone comes back, and a lost reply is settled by asking again.

use std::time::Duration;

use semel::{ErrorKind, Result};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::Instant;

use super::opened::Location;
use super::say;

/// How long to wait before a server that does not answer is asked again.
const PAUSE: Duration = Duration::from_millis(10);
/// An engine that lost a reply asks again by itself, but not sooner than this.
const ENGINE_PAUSE: Duration = Duration::from_millis(5);

/// Lets callers ask, unless somebody looks at the store. Counts the looks.
pub(super) struct Asker {
    looks: RwLock<u64>,
    location: Location,
}

/// An answer that no outage explains. Nobody looks at the store before `unseen` is dropped: what was acknowledged must be
/// said by then.
pub(super) struct Answer<'a, T> {
    pub(super) value: Result<T>,
    /// Whether an earlier try may have been carried out, of ours or of the engine's.
    pub(super) was_in_doubt: bool,
    pub(super) unseen: RwLockReadGuard<'a, u64>,
}

impl Asker {
    pub(super) fn new(location: Location) -> Self {
        Self { looks: RwLock::default(), location }
    }

    /// Says what is asked, and asks; a server as often as it takes. After a look it is said again: whoever listens took the
    /// look for the end of everything that was under way.
    pub(super) async fn ask<T, F>(&self, line: &str, mut ask: impl FnMut() -> F) -> Answer<'_, T>
    where
        F: Future<Output = Result<T>>,
    {
        let (mut said_at, mut is_lost, asked_at) = (None, false, Instant::now());
        let is_server = self.location == Location::Server;
        loop {
            let looks = self.looks.read().await;
            if said_at != Some(*looks) {
                say::line(format_args!("{line}"));
                said_at = Some(*looks);
            }
            let value = ask().await;
            let was_in_doubt = is_server && (is_lost || asked_at.elapsed() >= ENGINE_PAUSE);
            match value {
                Ok(value) => return Answer { value: Ok(value), was_in_doubt, unseen: looks },
                Err(error) if is_server && error.kind() == ErrorKind::Unknown => is_lost = true,
                Err(error) if is_server && error.kind() == ErrorKind::Unavailable => {}
                Err(error) => return Answer { value: Err(error), was_in_doubt, unseen: looks },
            }
            drop(looks);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until nobody asks anything; until the answer is dropped, nobody does.
    pub(super) async fn everybody_waits(&self) -> RwLockWriteGuard<'_, u64> {
        self.looks.write().await
    }
}
