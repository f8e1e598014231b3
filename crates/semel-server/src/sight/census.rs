//! How many records are in which state, found out in the background.

use std::sync::Arc;
use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::Record;

/// Walks through the store now and then, and remembers what it counted for each scope that somebody may ask for.
#[derive(Debug, Default)]
pub struct Census;

/// What a walk through the store counted, within one scope.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// By state.
    pub running: u64,
    /// By state.
    pub done: u64,
    /// By state.
    pub released: u64,
    /// By state.
    pub held: u64,
    /// Running, and nobody renews.
    pub lapsed: u64,
    /// The ones that have been running for longest, oldest first.
    pub oldest_running: Vec<Record>,
    /// The ones that have been held for longest, oldest first.
    pub oldest_held: Vec<Record>,
    /// When the walk ended, on the store's clock; `None` before the first.
    pub as_of: Option<Timestamp>,
    /// How long it took.
    pub took: Duration,
}

impl Census {
    /// What the last walk counted within this scope. A scope that no caller has is counted from the next walk on.
    pub fn latest(&self, scope: &[Box<str>]) -> Arc<Counted> {
        let _ = scope;
        Arc::default()
    }

    /// Something changed that people will want to see: walk soon.
    pub fn look_soon(&self) {}
}
