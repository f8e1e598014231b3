//! Builder for `Semel`.

use std::sync::Arc;
use std::time::Duration;

use super::duplicate_counts::BYTES_A_SECOND;
use super::semel::{Engine, Semel};
use super::sweeper::SweepPolicy;
use crate::error::{Error, Result};
use crate::policy::{Lapse, OnFailure, OnOutage, Policy};
use crate::store::Store;

/// How many done records an engine keeps in memory, if the builder does not say.
const REPLAYS_RECORDS_DEFAULT: usize = 4_096;
/// How many bytes those may take.
const REPLAYS_BYTES_DEFAULT: usize = 8 << 20;

/// Builder for [`Semel`]. A single claim may differ in everything but the store, the owner and what the engine does by
/// itself.
pub struct SemelBuilder {
    pub(super) store: Arc<dyn Store>,
    pub(super) policy: Policy,
    owner: Option<Box<str>>,
    pub(super) replays_records_max: usize,
    pub(super) replays_bytes_max: usize,
    pub(super) sweeping: SweepPolicy,
    pub(super) counts_bytes_a_second: u64,
    pub(super) mint: Box<dyn Fn() -> u128 + Send + Sync>,
}

impl SemelBuilder {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            policy: Policy::default(),
            owner: None,
            replays_records_max: REPLAYS_RECORDS_DEFAULT,
            replays_bytes_max: REPLAYS_BYTES_DEFAULT,
            sweeping: SweepPolicy::default(),
            counts_bytes_a_second: BYTES_A_SECOND,
            mint: Box::new(rand::random::<u128>),
        }
    }

    /// How long a permit is good without renewal; default 60 s.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.policy.lease = lease;
        self
    }

    /// How long a finished record is remembered; default 24 h.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.policy.retention = retention;
        self
    }

    /// What a lapsed lease means; default: the next claim runs again.
    #[must_use]
    pub fn lapse(mut self, lapse: Lapse) -> Self {
        self.policy.lapse = lapse;
        self
    }

    /// How many runs may be granted before the record is held; default: no bound.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.policy.attempts_max = Some(attempts);
        self
    }

    /// What an `Err` from the work means; default: the key is released.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.policy.on_failure = on_failure;
        self
    }

    /// What to do while the store does not answer; default: refuse.
    #[must_use]
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.policy.on_outage = on_outage;
        self
    }

    /// Who runs, in words for the operator who finds a stuck key; default: the process id.
    #[must_use]
    pub fn owner(mut self, owner: &str) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// How many done records to keep in memory, and how many bytes they may take with all that belongs to them, so that
    /// replays of them ask no store; default 4,096 records and 8 MiB, 0 for none. Only stores for which asking again
    /// costs more than that have their records kept.
    #[must_use]
    pub fn replays_kept(mut self, records_max: usize, bytes_max: usize) -> Self {
        self.replays_records_max = records_max;
        self.replays_bytes_max = bytes_max;
        self
    }

    /// How often the engine removes records past their retention, give or take a tenth; default 60 s. Any number of
    /// processes may sweep one store.
    #[must_use]
    pub fn sweep_every(mut self, every: Duration) -> Self {
        self.sweeping.every(every);
        self
    }

    /// How many records a sweep removes at a time; default 1,024.
    #[must_use]
    pub fn sweep_batch(mut self, records: usize) -> Self {
        self.sweeping.batch(records);
        self
    }

    /// Never sweeps by itself: for processes that only look, or where another one sweeps.
    #[must_use]
    pub fn no_sweep(mut self) -> Self {
        self.sweeping.never();
        self
    }

    /// How many bytes of records may be written a second for counts of duplicates; default 256 KiB, 0 to write them only
    /// in [`flush`](Semel::flush) and [`close`](Semel::close).
    #[must_use]
    pub fn counts_bytes_a_second(mut self, bytes: u64) -> Self {
        self.counts_bytes_a_second = bytes;
        self
    }

    /// Where permit ids come from; default: the operating system's randomness. For simulations: ids that
    /// repeat or can be guessed break every promise.
    #[must_use]
    pub fn permit_ids(mut self, mint: impl Fn() -> u128 + Send + Sync + 'static) -> Self {
        self.mint = Box::new(mint);
        self
    }

    /// The engine, or an error that names the choice that could never work.
    pub fn build(self) -> Result<Semel> {
        self.policy.checked()?;
        self.sweeping.checked()?;
        if self.owner.as_deref().is_some_and(|owner| owner.trim().is_empty()) {
            return Err(Error::invalid("owner is empty; name the process, or leave it out"));
        }
        Ok(self.build_unchecked())
    }

    /// The engine, for a builder whose choices are known to work.
    pub(super) fn build_unchecked(self) -> Semel {
        let owner = match &self.owner {
            Some(owner) => owner.clone(),
            None => format!("pid {}", std::process::id()).into(),
        };
        Semel::of(Engine::new(self), &owner)
    }
}
