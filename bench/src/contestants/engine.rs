//! The engine, and a store alone: driven by the machine directly, it is what is left of a call without the engine.
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use semel::clock::Timestamp;
use semel::machine::claim::{Ask, Claimed as ClaimAnswer, Probe, Reentry, claim};
use semel::machine::settle::complete;
use semel::machine::{Ruling, Write};
use semel::record::{PermitId, Record, Version};
use semel::store::{Store, Swap, SwapReply};
use semel::{
    Claim, Decision, Fingerprint, Key, LEASE_DEFAULT, Lapse, Outcome, Permit, RETENTION_DEFAULT, Semel,
};

use super::{Claimed, Contestant};
use crate::inputs::{self, Name, OPERATION, Response, SCOPE};

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
            other => bail!("key {number}: the answer to a claim was {}", other.as_str()),
        }
    }

    async fn complete(&self, permit: Permit) -> Result<()> {
        permit.complete(Outcome::success(self.outcome.clone())).await?;
        Ok(())
    }

    /// Writes the counts of duplicates, as the engine would do by itself later.
    async fn catch_up(&self) -> Result<()> {
        Ok(self.semel.flush().await?)
    }
}

thread_local! {
    /// One a thread, as in the engine: all threads would contend for the count of a single one.
    static OWNER: Arc<str> = "pid 1042".into();
}

/// A store, and what the machine needs besides.
pub(crate) struct StoreAlone<S> {
    store: S,
    outcome: Vec<u8>,
    retention: Duration,
}

pub(crate) struct Run {
    permit_id: PermitId,
    record: Arc<Record>,
    now: Timestamp,
}

impl<S: Store> StoreAlone<S> {
    pub(crate) fn new(store: S) -> Self {
        Self { store, outcome: Response::new().encoded(), retention: RETENTION_DEFAULT }
    }

    pub(crate) fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    pub(crate) fn outcome(mut self, outcome: Vec<u8>) -> Self {
        self.outcome = outcome;
        self
    }

    pub(crate) fn store(&self) -> &S {
        &self.store
    }

    pub(crate) fn into_store(self) -> S {
        self.store
    }

    /// Claims and completes many new keys, each step in one batch: for loading a store before it is measured.
    pub(crate) async fn fill(&self, numbers: std::ops::Range<u64>) -> Result<()> {
        let asks = numbers.map(|number| self.ask(number)).collect::<Result<Vec<_>>>()?;
        let claims = asks.iter().map(|ask| Ok(swap(None, first_write(ask)?))).collect::<Result<Vec<_>>>()?;
        let granted = self.store.swap(claims.into()).await?;
        let completes = asks.iter().zip(granted.value).map(|(ask, reply)| {
            let SwapReply::Swapped(record) = reply else { bail!("a key that is loaded was there before") };
            let write = self.last_write(&Run {
                permit_id: ask.permit_id,
                record: Arc::clone(&record),
                now: granted.now,
            })?;
            Ok(swap(Some(record.version), write))
        });
        let settled = self.store.swap(completes.collect::<Result<Vec<_>>>()?.into()).await?;
        if settled.value.iter().any(|reply| !matches!(reply, SwapReply::Swapped(_))) {
            bail!("a key that is loaded was written by another caller");
        }
        Ok(())
    }

    fn ask(&self, number: u64) -> Result<Ask> {
        Ok(Ask {
            key: Key::scoped([SCOPE], OPERATION, Name::of(number).as_str())?,
            fingerprint: Some(Fingerprint::from_bytes(inputs::digest(number))),
            label: None,
            permit_id: PermitId::new(number.into()),
            owner: OWNER.with(Arc::clone),
            reentry: Reentry::Refused,
            lease: LEASE_DEFAULT,
            retention: self.retention,
            lapse: Lapse::Rerun,
            attempts_max: None,
            first_event: None,
            probe: Probe::None,
        })
    }

    fn last_write(&self, run: &Run) -> Result<Write> {
        let outcome = Outcome::success(self.outcome.clone());
        let ruling = complete(Some(&run.record), run.permit_id, &outcome, run.now);
        ruling.write.context("a run that holds its permit completes")
    }

    async fn swap(&self, swap: Swap) -> Result<(SwapReply, Timestamp)> {
        let answer = self.store.swap([swap].into()).await?;
        let reply = answer.value.into_iter().next().context("one swap has one answer")?;
        Ok((reply, answer.now))
    }
}

impl<S: Store> Contestant for StoreAlone<S> {
    type Run = Run;

    /// Swaps as the engine does: on the guess that there is no record, since a claim is new more often than not.
    async fn claim(&self, number: u64) -> Result<Claimed<Run>> {
        let ask = self.ask(number)?;
        let (record, now) = match self.swap(swap(None, first_write(&ask)?)).await? {
            (SwapReply::Swapped(record), now) => {
                return Ok(Claimed::Run(Run { permit_id: ask.permit_id, record, now }));
            }
            (SwapReply::Stale(Some(record)), now) => (record, now),
            (SwapReply::Stale(None) | SwapReply::Full | SwapReply::Damaged(_) | SwapReply::Refused(_), _) => {
                bail!("nothing has to be full, swept or damaged here")
            }
        };
        let Ruling { answer: ClaimAnswer::Replay, .. } = claim(Some(&record), &ask, now) else {
            bail!("key {number} was not replayed");
        };
        Ok(Claimed::Replay(record.outcome().context("a done record has an outcome")?.bytes().len()))
    }

    async fn complete(&self, run: Run) -> Result<()> {
        let write = self.last_write(&run)?;
        let (SwapReply::Swapped(_), _) = self.swap(swap(Some(run.record.version), write)).await? else {
            bail!("another caller wrote a record whose permit was held");
        };
        Ok(())
    }
}

fn first_write(ask: &Ask) -> Result<Write> {
    // A machine that finds nothing asks no clock.
    claim(None, ask, Timestamp::default()).write.context("a first claim writes")
}

fn swap(expected: Option<Version>, write: Write) -> Swap {
    Swap { expected, next: write.next, keep: write.keep }
}
