//! Decisions as they are made.

use std::sync::Arc;

use semel::Key;
use tokio::sync::broadcast;

/// How many decisions a slow listener may be behind before it misses some, and is told so.
const BEHIND_MAX: usize = 1_024;

/// Where decisions are told to whoever listens.
#[derive(Clone, Debug)]
pub struct Live(broadcast::Sender<Arc<Seen>>);

/// A decision, or the end of a run.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its word: `run`, `replay`, `busy`, `mismatch`, `held`, `done`, `released`, `lost`, `resolved`.
    pub decision: &'static str,
    /// About what.
    pub key: Key,
    /// The how-manieth run, where there is one.
    pub attempt: Option<u32>,
}

impl Default for Live {
    fn default() -> Self {
        Self(broadcast::channel(BEHIND_MAX).0)
    }
}

impl Live {
    /// Tells whoever listens; costs next to nothing if nobody does.
    pub fn tell(&self, seen: impl FnOnce() -> Seen) {
        if self.0.receiver_count() > 0 {
            drop(self.0.send(Arc::new(seen())));
        }
    }

    /// Listens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Seen>> {
        self.0.subscribe()
    }
}
