//! The memory store driven by the machine directly: what is left of a call when the engine is taken away.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use semel::clock::Timestamp;
use semel::machine::claim::{Ask, Claimed, Probe, Reentry, claim};
use semel::machine::settle::complete;
use semel::machine::{Ruling, Write};
use semel::record::{PermitId, Record, Version};
use semel::store::{MemoryStore, Store, Swap, SwapReply};
use semel::{Fingerprint, Key, LEASE_DEFAULT, Lapse, Outcome, RETENTION_DEFAULT};

use super::contestant::{Contestant, roomy};
use crate::inputs::{self, Name, OPERATION, Response, SCOPE};

thread_local! {
    /// One a thread, as in the engine: a single one would be counted by all of them at once.
    static OWNER: Arc<str> = "pid 1042".into();
}

/// The store, and what the machine has to be told.
pub(crate) struct StoreAlone {
    store: MemoryStore,
    outcome: Vec<u8>,
}

impl StoreAlone {
    pub(crate) fn new() -> Self {
        Self { store: roomy(), outcome: Response::new().encoded() }
    }

    fn ask(number: u64) -> Result<Ask> {
        Ok(Ask {
            key: Key::scoped([SCOPE], OPERATION, Name::of(number).as_str())?,
            fingerprint: Some(Fingerprint::from_bytes(inputs::digest(number))),
            permit_id: PermitId::new(number.into()),
            owner: OWNER.with(Arc::clone),
            reentry: Reentry::Refused,
            lease: LEASE_DEFAULT,
            retention: RETENTION_DEFAULT,
            lapse: Lapse::Rerun,
            attempts_max: None,
            first_event: None,
            probe: Probe::None,
        })
    }

    /// Swaps as the engine does: on the guess that there is no record, since a claim is new more often than not.
    async fn swap(&self, expected: Option<Version>, write: Write) -> Result<(SwapReply, Timestamp)> {
        let answer = self.store.swap(vec![Swap { expected, next: write.next, keep: write.keep }]).await?;
        let reply = answer.value.into_iter().next().context("one swap has one answer")?;
        Ok((reply, answer.now))
    }

    async fn claim(&self, ask: &Ask) -> Result<(Claimed, Arc<Record>, Timestamp)> {
        // A machine that finds nothing asks no clock.
        let Ruling { write: Some(write), .. } = claim(None, ask, Timestamp::default()) else {
            bail!("a first claim writes");
        };
        match self.swap(None, write).await? {
            (SwapReply::Swapped(record), now) => Ok((Claimed::Run, record, now)),
            (SwapReply::Stale(Some(record)), now) => Ok((claim(Some(&record), ask, now).answer, record, now)),
            (SwapReply::Stale(None) | SwapReply::Full, _) => bail!("nothing has to be full or swept here"),
        }
    }
}

impl Contestant for StoreAlone {
    async fn cycle(&self, number: u64) -> Result<()> {
        let ask = Self::ask(number)?;
        let (Claimed::Run, record, now) = self.claim(&ask).await? else {
            bail!("key {number} was not to be run");
        };
        let outcome = Outcome::success(self.outcome.as_slice());
        let Ruling { write: Some(write), .. } = complete(Some(&record), ask.permit_id, &outcome, now) else {
            bail!("a run that holds its permit completes");
        };
        let (SwapReply::Swapped(_), _) = self.swap(Some(record.version), write).await? else {
            bail!("nobody else writes key {number}");
        };
        Ok(())
    }

    async fn replay(&self, number: u64) -> Result<usize> {
        let (Claimed::Replay, record, _) = self.claim(&Self::ask(number)?).await? else {
            bail!("key {number} was not replayed");
        };
        Ok(record.outcome().context("a done record has an outcome")?.bytes().len())
    }
}
