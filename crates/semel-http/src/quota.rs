//! How much each caller uses, counted by this process, in memory that is bounded a caller.
//!
//! - [`Usage::is_over`] before a claim: whether the caller may not start anything new, and when it is worth asking again.
//! - [`Usage::count_key`] once a first attempt was granted, [`Usage::count_bytes`] once its outcome is kept.
//! - [`Usage::uncount_record`] if the run was given back and left no record. As a new key it still counts, once.
//!
//! What is asked between the two by requests that run at the same time is not seen: a caller may pass its quota by as
//! many as it has in flight. A record counts for its retention from its grant on.

mod amounts;
mod new_keys;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use semel::RecordId;
use tokio::time::Instant;

use crate::caller::Caller;
use crate::settings::Quotas;
use amounts::Amounts;
use new_keys::NewKeys;

/// Callers of one shard wait for one another.
const SHARDS: usize = 16;
/// How often a shard looks for callers that have nothing left.
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// What callers use.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    shards: [Mutex<Shard>; SHARDS],
    hashed_by: RandomState,
}

#[derive(Debug, Default)]
struct Shard {
    accounts: HashMap<Box<str>, Account>,
    swept_at: Option<Instant>,
}

/// What one caller uses.
#[derive(Debug, Default)]
struct Account {
    new_keys: NewKeys,
    records: Amounts,
    bytes: Amounts,
}

impl Usage {
    /// Whether `caller` is over its quotas for this key, and after how long it is not, if it starts nothing meanwhile.
    pub(crate) fn is_over(
        &self,
        caller: &Caller,
        key: RecordId,
        quotas: &Quotas,
        now: Instant,
    ) -> Option<Duration> {
        let mut shard = self.shard(caller);
        // Nobody has to be known to be over a quota of nothing.
        let account = shard.accounts.get_mut(caller.as_str());
        let mut nothing = Account::default();
        let account = account.unwrap_or(&mut nothing);
        let over = account.is_over(key, quotas, now);
        if account.is_empty() {
            shard.accounts.remove(caller.as_str());
        }
        over
    }

    /// Counts a record that was not there before, which is remembered for `retention`.
    pub(crate) fn count_key(
        &self,
        caller: &Caller,
        key: RecordId,
        quotas: &Quotas,
        retention: Duration,
        now: Instant,
    ) {
        self.count(caller, now, |account| {
            if quotas.new_keys_per_minute.is_some() {
                account.new_keys.add(key, now);
            }
            if quotas.records.is_some() {
                account.records.add(1, retention, now);
            }
        });
    }

    /// Takes back the record that was counted at `counted_at` for `retention`: it was given back.
    pub(crate) fn uncount_record(&self, caller: &Caller, retention: Duration, counted_at: Instant) {
        if let Some(account) = self.shard(caller).accounts.get_mut(caller.as_str()) {
            account.records.subtract_one(retention, counted_at);
        }
    }

    /// Counts the bytes of an outcome, which is remembered for `retention`.
    pub(crate) fn count_bytes(
        &self,
        caller: &Caller,
        quotas: &Quotas,
        retention: Duration,
        bytes: u64,
        now: Instant,
    ) {
        if quotas.bytes.is_some() && bytes > 0 {
            self.count(caller, now, |account| account.bytes.add(bytes, retention, now));
        }
    }

    fn count(&self, caller: &Caller, now: Instant, add: impl FnOnce(&mut Account)) {
        let mut shard = self.shard(caller);
        shard.sweep(now);
        match shard.accounts.get_mut(caller.as_str()) {
            Some(account) => add(account),
            None => add(shard.accounts.entry(caller.as_str().into()).or_default()),
        }
    }

    fn shard(&self, caller: &Caller) -> MutexGuard<'_, Shard> {
        let [first, ..] = &self.shards;
        let [low, ..] = self.hashed_by.hash_one(caller.as_str()).to_le_bytes();
        let shard = self.shards.get(usize::from(low) % SHARDS);
        // Nothing panics here half-way through a change, so what a poisoned lock guards is whole.
        shard.unwrap_or(first).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    /// Drops callers that have nothing left: they may never come back to be dropped themselves.
    fn sweep(&mut self, now: Instant) {
        let is_due = self.swept_at.is_none_or(|at| now.duration_since(at) >= SWEEP_EVERY);
        if is_due {
            self.swept_at = Some(now);
            self.accounts.retain(|_, account| {
                account.forget(now);
                !account.is_empty()
            });
        }
    }
}

impl Account {
    fn is_over(&mut self, key: RecordId, quotas: &Quotas, now: Instant) -> Option<Duration> {
        self.forget(now);
        let new_keys = quotas.new_keys_per_minute.and_then(|most| self.new_keys.is_over(key, most, now));
        let amounts = [(&self.records, quotas.records), (&self.bytes, quotas.bytes)];
        let amounts = amounts.into_iter().filter_map(|(used, most)| used.is_over(most?, now));
        amounts.chain(new_keys).max()
    }

    fn forget(&mut self, now: Instant) {
        self.new_keys.forget(now);
        self.records.forget(now);
        self.bytes.forget(now);
    }

    fn is_empty(&self) -> bool {
        self.new_keys.is_empty() && self.records.is_empty() && self.bytes.is_empty()
    }
}

#[cfg(test)]
mod tests;
