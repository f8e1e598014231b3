//! Who is measured. Each does, for every call, what its users would do: from texts to an answer.
//!
//! - [`Contestant`]: what all of them can do.
//! - [`engine`](Engine): the engine through its public API, and a store driven by the machine directly.
//! - [`maps`](PlainMap): a `DashMap` with check-then-insert, as web projects write it, and a lean one.

mod engine;
mod maps;

use anyhow::{Result, bail};
use semel::store::MemoryStore;

pub(crate) use engine::{Engine, StoreAlone};
pub(crate) use maps::{LeanMap, PlainMap};

pub(crate) enum Claimed<R> {
    /// The key is new: run, and complete with this.
    Run(R),
    /// The key is done, and its outcome, of so many bytes, was handed back.
    Replay(usize),
}

pub(crate) trait Contestant: Send + Sync + 'static {
    type Run: Send;

    fn claim(&self, number: u64) -> impl Future<Output = Result<Claimed<Self::Run>>> + Send;

    /// Ends a run with the outcome that all of them have.
    fn complete(&self, run: Self::Run) -> impl Future<Output = Result<()>> + Send;

    /// Claims a new key, and completes it.
    fn cycle(&self, number: u64) -> impl Future<Output = Result<()>> + Send {
        async move {
            let Claimed::Run(run) = self.claim(number).await? else {
                bail!("key {number} was not to be run");
            };
            self.complete(run).await
        }
    }

    /// Claims a key that is done, and returns how many bytes its outcome has.
    fn replay(&self, number: u64) -> impl Future<Output = Result<usize>> + Send {
        async move {
            let Claimed::Replay(bytes) = self.claim(number).await? else {
                bail!("key {number} was not replayed");
            };
            Ok(bytes)
        }
    }

    /// Does the work that replays deferred.
    fn catch_up(&self) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// A memory store that no measurement fills.
pub(crate) fn roomy() -> MemoryStore {
    MemoryStore::builder().records_max(100_000_000).bytes_max(100 << 30).build()
}

/// Tries a contestant that knows neither key 9,007 nor key 9,008; its name, and how many bytes its outcomes have.
#[cfg(test)]
pub(crate) fn refuses_a_second_claim(
    (name, bytes): (&str, usize),
    runtime: &tokio::runtime::Runtime,
    contestant: &impl Contestant,
) {
    runtime.block_on(async {
        let Claimed::Run(run) = contestant.claim(9_007).await.unwrap() else {
            panic!("{name}: the first claim was not granted")
        };
        // A claim while it runs is refused, which is an error to a contestant.
        assert!(contestant.claim(9_007).await.is_err(), "{name}");
        contestant.complete(run).await.unwrap();
        for _ in 0..2 {
            assert!(
                matches!(contestant.claim(9_007).await, Ok(Claimed::Replay(found)) if found == bytes),
                "{name}"
            );
        }
        assert!(contestant.cycle(9_007).await.is_err(), "{name}");
        assert!(contestant.replay(9_008).await.is_err(), "{name}");
    });
}
