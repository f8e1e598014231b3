//! `Semel` over a memory store, through its public API.

use anyhow::{Result, bail};
use semel::store::MemoryStore;
use semel::{Claim, Decision, Fingerprint, Key, Outcome, Semel};

use super::contestant::Contestant;
use crate::inputs::{self, Name, OPERATION, Response, SCOPE};

/// The engine, as a service would hold it.
pub(crate) struct Engine {
    semel: Semel,
    outcome: Vec<u8>,
}

impl Engine {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self { semel: Semel::new(store), outcome: Response::new().encoded() }
    }

    /// Asks to run, as an application would.
    pub(crate) async fn claim(&self, number: u64) -> semel::Result<Decision> {
        let key = Key::scoped([SCOPE], OPERATION, Name::of(number).as_str())?;
        let fingerprint = Fingerprint::from_bytes(inputs::digest(number));
        self.semel.claim(Claim::new(&key).fingerprint(fingerprint)).await
    }
}

impl Contestant for Engine {
    async fn cycle(&self, number: u64) -> Result<()> {
        let Decision::Run(permit) = self.claim(number).await? else {
            bail!("key {number} was not to be run");
        };
        permit.complete(Outcome::success(self.outcome.as_slice())).await?;
        Ok(())
    }

    async fn replay(&self, number: u64) -> Result<usize> {
        let Decision::Replay(replay) = self.claim(number).await? else {
            bail!("key {number} was not replayed");
        };
        Ok(replay.outcome().bytes().len())
    }

    /// Writes the counts of duplicates, as the engine would do by itself two seconds later.
    async fn catch_up(&self) -> Result<()> {
        Ok(self.semel.flush().await?)
    }
}
