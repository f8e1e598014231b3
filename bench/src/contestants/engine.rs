//! `Semel` over a store, through its public API.

use anyhow::{Result, bail};
use semel::store::Store;
use semel::{Claim, Decision, Fingerprint, Key, Outcome, Permit, Semel};

use super::contestant::{Claimed, Contestant};
use crate::inputs::{self, Name, OPERATION, Response, SCOPE};

/// The engine, as a service would hold it.
pub(crate) struct Engine {
    semel: Semel,
    outcome: Vec<u8>,
}

impl Engine {
    pub(crate) fn new(store: impl Store) -> Self {
        Self { semel: Semel::new(store), outcome: Response::new().encoded() }
    }

    /// An engine with choices of its own, whose runs all end with this outcome.
    pub(crate) fn over(semel: Semel, outcome: Vec<u8>) -> Self {
        Self { semel, outcome }
    }

    /// Asks to run, as an application would.
    pub(crate) async fn decision(&self, number: u64) -> semel::Result<Decision> {
        let key = Key::scoped([SCOPE], OPERATION, Name::of(number).as_str())?;
        let fingerprint = Fingerprint::from_bytes(inputs::digest(number));
        self.semel.claim(Claim::new(&key).fingerprint(fingerprint)).await
    }
}

impl Contestant for Engine {
    type Run = Permit;

    async fn claim(&self, number: u64) -> Result<Claimed<Permit>> {
        match self.decision(number).await? {
            Decision::Run(permit) => Ok(Claimed::Run(permit)),
            Decision::Replay(replay) => Ok(Claimed::Replay(replay.outcome().bytes().len())),
            other => bail!("key {number}: a claim was told {}", other.word()),
        }
    }

    async fn complete(&self, permit: Permit) -> Result<()> {
        permit.complete(Outcome::success(self.outcome.as_slice())).await?;
        Ok(())
    }

    /// Writes the counts of duplicates, as the engine would do by itself two seconds later.
    async fn catch_up(&self) -> Result<()> {
        Ok(self.semel.flush().await?)
    }
}
