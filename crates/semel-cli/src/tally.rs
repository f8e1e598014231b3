//! What a walk through a whole store counted.

use std::time::Duration;

use anyhow::Result;
use semel::clock::Timestamp;
use semel::record::{Record, State};
use semel::store::{Filter, Store};
use serde_json::{Value, json};

use crate::keys::words;
use crate::terminal::bar::Bar;
use crate::terminal::moment::rfc3339;
use crate::terminal::stopwatch::Stopwatch;
use crate::walk::Walk;

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) running: u64,
    pub(crate) done: u64,
    pub(crate) released: u64,
    pub(crate) held: u64,
    /// Running, and nobody renews.
    pub(crate) lapsed: u64,
    /// There, and past their time: a sweep removes them.
    pub(crate) past: u64,
    pub(crate) outcome_bytes: u64,
    pub(crate) duplicates: u64,
    pub(crate) mismatches: u64,
    pub(crate) oldest_running: Option<Oldest>,
    pub(crate) oldest_held: Option<Oldest>,
    pub(crate) took: Duration,
}

/// The record that has been in its state for longest.
#[derive(Clone, Debug)]
pub(crate) struct Oldest {
    pub(crate) record: Record,
    pub(crate) since: Timestamp,
    pub(crate) now: Timestamp,
}

impl Tally {
    /// Counts everything there is.
    pub(crate) async fn of(store: &dyn Store) -> Result<Self> {
        let (mut tally, watch, bar) = (Self::default(), Stopwatch::start(), Bar::of_ids("counting"));
        let mut walk = Walk::new(store, Filter::default(), None);
        while let Some(page) = walk.next().await? {
            tally.past = tally.past.saturating_add(page.past as u64);
            for record in page.records {
                tally.add(record, page.now);
            }
            bar.walked(walk.after(), tally.records());
        }
        tally.took = watch.elapsed();
        Ok(tally)
    }

    /// How many records count.
    pub(crate) fn records(&self) -> u64 {
        [self.running, self.done, self.released, self.held].into_iter().fold(0, u64::saturating_add)
    }

    fn add(&mut self, record: Record, now: Timestamp) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.duplicates, record.duplicates.count);
        add(&mut self.mismatches, record.mismatches.count);
        match &record.state {
            State::Running(running) => {
                add(&mut self.running, 1);
                add(&mut self.lapsed, u64::from(!running.lease_is_good(now)));
                keep_older(&mut self.oldest_running, record, now);
            }
            State::Done(done) => {
                add(&mut self.done, 1);
                add(&mut self.outcome_bytes, done.outcome.bytes().len() as u64);
            }
            State::Released(_) => add(&mut self.released, 1),
            State::Held(_) => {
                add(&mut self.held, 1);
                keep_older(&mut self.oldest_held, record, now);
            }
        }
    }

    /// For scripts.
    pub(crate) fn json(&self) -> Value {
        json!({
            "records": self.records(),
            "running": self.running,
            "done": self.done,
            "released": self.released,
            "held": self.held,
            "lapsed_leases": self.lapsed,
            "past_retention": self.past,
            "outcome_bytes": self.outcome_bytes,
            "duplicates": self.duplicates,
            "mismatches": self.mismatches,
            "oldest_running": self.oldest_running.as_ref().map(Oldest::json),
            "oldest_held": self.oldest_held.as_ref().map(Oldest::json),
            "took_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

impl Oldest {
    /// For how long it has been so.
    pub(crate) fn age(&self) -> Duration {
        self.now.since(self.since)
    }

    fn json(&self) -> Value {
        let key = &self.record.key;
        json!({
            "id": key.id().to_string(),
            "scope": key.scope().collect::<Vec<_>>(),
            "operation": key.operation(),
            "name": key.name(),
            "since": rfc3339(self.since),
            "age_ms": u64::try_from(self.age().as_millis()).unwrap_or(u64::MAX),
        })
    }
}

fn keep_older(oldest: &mut Option<Oldest>, record: Record, now: Timestamp) {
    let since = words::since(&record);
    if oldest.as_ref().is_none_or(|oldest| since < oldest.since) {
        *oldest = Some(Oldest { record, since, now });
    }
}
