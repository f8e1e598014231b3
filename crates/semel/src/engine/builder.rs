//! How an engine is to be.

use std::sync::Arc;
use std::time::Duration;

use super::batch::Batcher;
use super::duplicates::Ledger;
use super::replays::Replays;
use super::semel::{Inner, Semel};
use super::wait::Waiters;
use crate::error::{Error, Result};
use crate::observe::Counters;
use crate::policy::{Lapse, OnFailure, OnOutage, Policy};
use crate::store::Store;
use crate::stripe::Striped;

/// How many done records an engine keeps in memory, unless told otherwise.
const REPLAYS_RECORDS_DEFAULT: usize = 4_096;
/// How many bytes of outcomes those may have.
const REPLAYS_BYTES_DEFAULT: usize = 8 << 20;

/// How an engine is to be. Every choice but the owner can be made anew for a single claim.
pub struct SemelBuilder {
    store: Arc<dyn Store>,
    policy: Policy,
    owner: Option<Box<str>>,
    replays_records_max: usize,
    replays_bytes_max: usize,
    mint: Box<dyn Fn() -> u128 + Send + Sync>,
}

impl SemelBuilder {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            policy: Policy::default(),
            owner: None,
            replays_records_max: REPLAYS_RECORDS_DEFAULT,
            replays_bytes_max: REPLAYS_BYTES_DEFAULT,
            mint: Box::new(rand::random::<u128>),
        }
    }

    /// How long a permit is good without renewal; 60 s unless said.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.policy.lease = lease;
        self
    }

    /// How long a finished record is remembered; 24 h unless said.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.policy.retention = retention;
        self
    }

    /// What a lapsed lease means; a second run unless said.
    #[must_use]
    pub fn lapse(mut self, lapse: Lapse) -> Self {
        self.policy.lapse = lapse;
        self
    }

    /// How many runs may be granted before the record is held; no bound unless said.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.policy.attempts_max = Some(attempts);
        self
    }

    /// What an `Err` from the work means; a release unless said.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.policy.on_failure = on_failure;
        self
    }

    /// What to do while the store does not answer; refuse unless said.
    #[must_use]
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.policy.on_outage = on_outage;
        self
    }

    /// Who runs, in words for whoever finds a stuck key; the process id unless said.
    #[must_use]
    pub fn owner(mut self, owner: &str) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// How many done records to keep in memory, so that replays of them ask no store; 4,096 unless said, 0 for
    /// none. Only answers that cost a round trip are kept.
    #[must_use]
    pub fn replays_kept(mut self, records_max: usize, outcome_bytes_max: usize) -> Self {
        self.replays_records_max = records_max;
        self.replays_bytes_max = outcome_bytes_max;
        self
    }

    /// Where permit ids come from; the operating system's randomness unless said. For simulations: ids that
    /// repeat or can be guessed break every promise.
    #[must_use]
    pub fn permit_ids(mut self, mint: impl Fn() -> u128 + Send + Sync + 'static) -> Self {
        self.mint = Box::new(mint);
        self
    }

    /// The engine, or an error that names the choice that could never work.
    pub fn build(self) -> Result<Semel> {
        self.policy.checked()?;
        if self.owner.as_deref().is_some_and(|owner| owner.trim().is_empty()) {
            return Err(Error::invalid("owner is empty; name the process, or leave it out"));
        }
        Ok(self.build_default())
    }

    pub(super) fn build_default(self) -> Semel {
        let owner = self.owner.unwrap_or_else(|| format!("pid {}", std::process::id()).into());
        Semel {
            inner: Arc::new(Inner {
                batcher: Batcher::new(Arc::clone(&self.store)),
                store: self.store,
                policy: self.policy,
                owner: Striped::new(|| Arc::from(&*owner)),
                duplicates: Ledger::default(),
                replays: Replays::new(self.replays_records_max, self.replays_bytes_max),
                waiters: Waiters::default(),
                counters: Counters::default(),
                mint: self.mint,
            }),
        }
    }
}
