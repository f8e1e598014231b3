//! What every contestant can do.

use std::future::Future;

use anyhow::{Result, bail};
use semel::store::MemoryStore;

/// What a claim is told.
pub(crate) enum Claimed<R> {
    /// Nobody has claimed the key: run, and complete with this.
    Run(R),
    /// The key is done, and its outcome, of so many bytes, was handed back.
    Replay(usize),
}

/// Something that remembers which keys were done.
pub(crate) trait Contestant: Send + Sync + 'static {
    /// What a claim hands out for its complete.
    type Run: Send;

    /// Asks to run.
    fn claim(&self, number: u64) -> impl Future<Output = Result<Claimed<Self::Run>>> + Send;

    /// Ends a run with the outcome that all of them have.
    fn complete(&self, run: Self::Run) -> impl Future<Output = Result<()>> + Send;

    /// Claims a key that nobody has claimed, and completes it.
    fn cycle(&self, number: u64) -> impl Future<Output = Result<()>> + Send {
        async move {
            let Claimed::Run(run) = self.claim(number).await? else {
                bail!("key {number} was not to be run");
            };
            self.complete(run).await
        }
    }

    /// Claims a key that is done, and answers how many bytes its outcome has.
    fn replay(&self, number: u64) -> impl Future<Output = Result<usize>> + Send {
        async move {
            let Claimed::Replay(bytes) = self.claim(number).await? else {
                bail!("key {number} was not replayed");
            };
            Ok(bytes)
        }
    }

    /// Does what replays have left for later.
    fn catch_up(&self) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// A memory store that no measurement fills.
pub(crate) fn roomy() -> MemoryStore {
    MemoryStore::builder().records_max(100_000_000).bytes_max(100 << 30).build()
}
