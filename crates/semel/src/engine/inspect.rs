//! For people and tools: look at records, settle what is held, sweep by hand.

use super::carry::{Guess, let_go};
use super::driven::until_heard;
use super::semel::Semel;
use crate::error::Result;
use crate::key::Key;
use crate::machine::settle::{self, Resolution, Resolved};
use crate::record::Record;
use crate::store::{Page, Scan, Swept};

impl Semel {
    /// The record of a key, if there is one that still counts. Never refreshes it, never counts as a duplicate.
    pub async fn get(&self, key: &Key) -> Result<Option<Record>> {
        let found = self.get_all(std::slice::from_ref(key)).await?;
        Ok(found.into_iter().next().flatten())
    }

    /// The records of many keys in one round trip, in their order; as [`get`](Self::get) for each.
    pub async fn get_all(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        let answer = self.inner.store.load(keys.iter().map(Key::id).collect()).await?;
        let counts = |(record, key): (Option<Record>, &Key)| {
            record.filter(|record| record.key == *key && record.is_live(answer.now))
        };
        Ok(answer.value.into_iter().zip(keys).map(counts).collect())
    }

    /// A page of records, in the order of their ids.
    pub async fn scan(&self, scan: Scan) -> Result<Page> {
        let answer = self.inner.store.scan(scan).await?;
        let mut page = answer.value;
        page.records.retain(|record| record.is_live(answer.now));
        Ok(page)
    }

    /// Settles a held record: done with an outcome, or released.
    pub async fn resolve(&self, key: &Key, resolution: Resolution) -> Result<Resolved> {
        let permit_id = self.inner.mint();
        let rule = move |found: Option<&Record>, now| settle::resolve(found, permit_id, &resolution, now);
        let carried = self.inner.carry(key.clone(), Guess::Open, rule, let_go).await?;
        self.inner.waiters.wake(&key.id());
        Ok(carried.answer)
    }

    /// Removes at most `limit` records that are past their time. A [`Sweeper`](super::Sweeper) does this by itself.
    pub async fn sweep(&self, limit: usize) -> Result<Swept> {
        let swept = until_heard(self.inner.store.sweep(limit), drop).await?.value;
        self.inner.counters.swept.add(swept.removed as u64);
        Ok(swept)
    }
}
