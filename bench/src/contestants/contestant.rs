//! What every contestant can do.

use std::future::Future;

use anyhow::Result;
use semel::store::MemoryStore;

/// Something that remembers which keys were done.
pub(crate) trait Contestant: Send + Sync + 'static {
    /// Claims a key that nobody has claimed, and completes it.
    fn cycle(&self, number: u64) -> impl Future<Output = Result<()>> + Send;

    /// Claims a key that is done, and answers how many bytes its outcome has.
    fn replay(&self, number: u64) -> impl Future<Output = Result<usize>> + Send;

    /// Does what replays have left for later.
    fn catch_up(&self) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// A memory store that no measurement fills.
pub(crate) fn roomy() -> MemoryStore {
    MemoryStore::builder().records_max(100_000_000).bytes_max(100 << 30).build()
}
