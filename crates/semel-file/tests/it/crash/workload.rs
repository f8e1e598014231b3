//! Callers that claim, complete, release, rewrite and repeat themselves, all from one seed.

use std::sync::Arc;
use std::time::Duration;

use semel::clock::{Clock, Timestamp};
use semel::machine::Write;
use semel::machine::amend::count_duplicates;
use semel::machine::claim::{Ask, Probe, Reentry, claim};
use semel::machine::settle::{complete, release, renew};
use semel::record::{Duplicates, PermitId, Record, Running, State, Version};
use semel::store::{Store, Swap, SwapReply};
use semel::{ErrorKind, Key, Lapse, Outcome, RecordId, Result};
use semel_testkit::ManualClock;

use super::ledger::Ledger;
use crate::dice::Dice;
use crate::sync::{loaded, ready};

/// Where the clock stands at first.
const STARTED_AT: u64 = 1_000_000_000_000;

/// What callers do, and what they were told.
pub(crate) struct Workload {
    dice: Dice,
    keys: Vec<Key>,
    pub(crate) clock: ManualClock,
    pub(crate) ledger: Ledger,
    /// How many records were removed by sweeps.
    pub(crate) swept: usize,
}

impl Workload {
    pub(crate) fn new(seed: u64, keys: usize) -> Self {
        let key = |number| Key::scoped(["crash"], "charge", &format!("order-{number}")).unwrap();
        let clock = ManualClock::at(STARTED_AT);
        let mut ledger = Ledger::default();
        ledger.reads(0, clock.now());
        Self { dice: Dice::new(seed), keys: (0..keys).map(key).collect(), clock, ledger, swept: 0 }
    }

    /// One thing after the other, until one fails. `operations` says how many operations the disk saw.
    pub(crate) fn run(
        &mut self,
        steps: usize,
        store: &dyn Store,
        operations: impl Fn() -> usize,
    ) -> Result<()> {
        for _ in 0..steps {
            match self.dice.number(1, 100) {
                1..=75 => self.swap(store, &operations)?,
                76..=85 => {
                    let limit = self.dice.place(20);
                    self.swept += ready(store.sweep(limit))?.value.removed;
                }
                _ => {
                    self.clock.advance(Duration::from_millis(self.dice.number(1, 3_000)));
                    self.ledger.reads(operations(), self.clock.now());
                }
            }
        }
        Ok(())
    }

    /// A batch of whatever the machine has to write about some keys.
    fn swap(&mut self, store: &dyn Store, operations: &impl Fn() -> usize) -> Result<()> {
        let ids: Vec<RecordId> = (0..self.dice.number(1, 6))
            .map(|_| self.dice.place(self.keys.len() - 1))
            .map(|key| self.keys[key].id())
            .collect();
        let loaded = loaded(store, ids.clone())?;
        let mut batch = Vec::new();
        for (id, found) in ids.iter().zip(&loaded.value) {
            let key = self.keys.iter().find(|key| key.id() == *id).unwrap().clone();
            if let Some(Write { next, keep }) = self.rule(&key, found.as_deref(), loaded.now) {
                let stale = self.dice.happens(5).then_some(Version::new(1));
                let expected = stale.or(found.as_ref().map(|record| record.version));
                batch.push(Swap { expected, next, keep });
            }
        }
        self.carry(&batch, store, operations)
    }

    /// Carries a batch to the store, and notes what is heard of it.
    pub(crate) fn carry(
        &mut self,
        batch: &[Swap],
        store: &dyn Store,
        operations: &impl Fn() -> usize,
    ) -> Result<()> {
        let begun = operations();
        let reply = ready(store.swap(batch.to_vec().into()));
        match reply {
            Ok(answer) => {
                for (swap, reply) in batch.iter().zip(answer.value) {
                    if let SwapReply::Swapped(record) = reply {
                        self.ledger.acknowledged(swap, begun, operations(), record);
                    }
                }
                Ok(())
            }
            Err(error) => {
                if error.kind() == ErrorKind::Unknown {
                    for swap in batch {
                        self.ledger.unknown(swap, begun);
                    }
                }
                Err(error)
            }
        }
    }

    /// What somebody wants of this record.
    fn rule(&mut self, key: &Key, found: Option<&Record>, now: Timestamp) -> Option<Write> {
        match found.filter(|record| record.is_live(now)) {
            Some(record) => match &record.state {
                State::Running(running) if running.lease_is_good(now) => self.settle(record, running, now),
                State::Done(_) if self.dice.happens(50) => {
                    let seen = Duplicates { count: 1, last_seen_at: Some(now) };
                    count_duplicates(found, seen, now).write
                }
                _ => claim(found, &self.ask(key), now).write,
            },
            None => claim(found, &self.ask(key), now).write,
        }
    }

    fn settle(&mut self, record: &Record, running: &Running, now: Timestamp) -> Option<Write> {
        let permit_id = running.grant.permit_id;
        match self.dice.number(1, 100) {
            1..=60 => {
                let outcome = self.outcome();
                complete(Some(record), permit_id, &outcome, now).write
            }
            61..=80 => release(Some(record), permit_id, "gave up", now).write,
            81..=95 => renew(Some(record), permit_id, Duration::from_secs(3), now).write,
            _ => claim(Some(record), &self.ask(&record.key), now).write,
        }
    }

    /// Mostly small; some do not fit into a sector, and a few not into a segment.
    fn outcome(&mut self) -> Outcome {
        let bytes = match self.dice.number(1, 100) {
            1..=70 => self.dice.place(100),
            71..=97 => self.dice.place(1_500),
            98..=99 => self.dice.place(6_000),
            _ => self.dice.place(50_000),
        };
        Outcome::success(self.dice.bytes(bytes))
    }

    fn ask(&mut self, key: &Key) -> Ask {
        let retention = match self.dice.number(1, 100) {
            1..=75 => Duration::from_millis(self.dice.number(500, 5_000)),
            _ => Duration::from_hours(1),
        };
        Ask {
            key: key.clone(),
            fingerprint: None,
            label: None,
            permit_id: PermitId::new(self.dice.permit_id()),
            owner: Arc::from("workload"),
            reentry: Reentry::Refused,
            lease: Duration::from_millis(self.dice.number(500, 4_000)),
            retention,
            lapse: if self.dice.happens(5) { Lapse::Hold } else { Lapse::Rerun },
            attempts_max: None,
            first_event: None,
            probe: Probe::None,
        }
    }

    /// A write for every key, whatever is there: each must be taken, under a version like none before.
    pub(crate) fn touch_all(&mut self, store: &dyn Store) -> Result<Vec<Swap>> {
        let ids = self.keys.iter().map(Key::id).collect();
        let loaded = loaded(store, ids)?;
        let keys = self.keys.clone();
        let swaps = keys.iter().zip(&loaded.value).map(|(key, found)| {
            let seen = Duplicates { count: 1, last_seen_at: Some(loaded.now) };
            let counted = count_duplicates(found.as_deref(), seen, loaded.now).write;
            let write =
                counted.or_else(|| claim(found.as_deref(), &self.ask(key), loaded.now).write).unwrap();
            let expected = found.as_ref().map(|record| record.version);
            Swap { expected, next: write.next, keep: write.keep }
        });
        Ok(swaps.collect())
    }
}
