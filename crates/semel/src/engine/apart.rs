//! Asks that the application carries to the store itself: inside a transaction of its own, together with the effect.
//!
//! The machine still decides. Whoever carries an ask loads the record and swaps it at its version, as the engine would,
//! and starts over if somebody else wrote first; the store's crate does that.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use super::ask::Claim;
use super::batch::Cost;
use super::carry::Carried;
use super::decision::RecordedOnce;
use super::permit::Permit;
use super::semel::Semel;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::machine::Ruling;
use crate::machine::claim::{self, Ask, Probe, Recorded};
use crate::machine::settle::{self, Completed};
use crate::outcome::Outcome;
use crate::record::Record;

type Rule<A> = Box<dyn Fn(Option<&Record>, Timestamp) -> Ruling<A> + Send + Sync>;

/// An ask that somebody else carries.
pub struct Apart<A> {
    key: Key,
    known: Option<Arc<Record>>,
    rule: Rule<A>,
}

impl<A> Apart<A> {
    pub(super) fn new(
        key: &Key,
        rule: impl Fn(Option<&Record>, Timestamp) -> Ruling<A> + Send + Sync + 'static,
    ) -> Self {
        Self { key: key.clone(), known: None, rule: Box::new(rule) }
    }

    /// Whose record is asked for.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The record as the caller last saw it, if it ever did: a guess that saves a look.
    pub fn known(&self) -> Option<&Arc<Record>> {
        self.known.as_ref()
    }

    /// What the machine says to the record that was found at `now`.
    pub fn rule(&self, found: Option<&Record>, now: Timestamp) -> Ruling<A> {
        (self.rule)(found, now)
    }
}

impl Permit {
    /// The end of this run, to be carried inside a transaction; `None` if no store knows of it.
    pub fn complete_apart(&self, outcome: Outcome) -> Option<Apart<Completed>> {
        let proof = self.proof();
        let rule: Rule<_> = Box::new(move |found, now| settle::complete(found, proof, &outcome, now));
        let apart = || Apart { key: self.key().clone(), known: self.known(), rule };
        (!self.is_unprotected()).then(apart)
    }

    /// What to tell a caller whose permit turned out to be lost.
    pub fn lost_apart(&self) -> Error {
        self.mark_lost("the outcome was not stored")
    }
}

impl Semel {
    /// A `record_once`, to be carried inside a transaction.
    pub fn record_once_apart(&self, claim: &Claim, outcome: Outcome) -> Result<Apart<Recorded>> {
        let ask = Ask { probe: Probe::None, ..claim.ask(&self.inner)? };
        let key = ask.key.clone();
        Ok(Apart::new(&key, move |found, now| claim::record_once(found, &ask, &outcome, now)))
    }

    /// What to tell the caller, once its `record_once` was carried: the answer, and the record as it is now.
    pub fn recorded_apart(
        &self,
        answer: Recorded,
        record: Option<Arc<Record>>,
        now: Timestamp,
    ) -> Result<RecordedOnce> {
        // Nothing of it may be kept in memory: the transaction may yet be rolled back.
        self.inner.recorded(Carried { answer, record, now, cost: Cost::Nothing }, Instant::now())
    }
}

impl<A> fmt::Debug for Apart<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Apart").field("key", &self.key).finish_non_exhaustive()
    }
}
