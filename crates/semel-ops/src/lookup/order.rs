//! The first records of a selection by age or by change.
//!
//! Stores scan by id alone, so any other order takes a walk through all of the selection. Only moments and ids are kept
//! meanwhile, for as many records as are wanted; those are read again at the end.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Answer, Store};
use semel::{RecordId, Result};
use tokio::time::Instant;

use super::Selection;

/// How many records are read again at once.
const LOADED_AT_ONCE: usize = 64;

/// How a list is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By id, the order of every store: a list can be continued behind any id.
    #[default]
    Id,
    /// By when a record was first seen, oldest first.
    Age,
    /// By when a record was last written, newest first.
    Changed,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Id, Self::Age, Self::Changed];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Age => "age",
            Self::Changed => "changed",
        }
    }

    /// What a record is sorted by: smaller is first.
    fn rank(self, record: &Record) -> (u64, RecordId) {
        let id = record.key.id();
        match self {
            Self::Id => (0, id),
            Self::Age => (record.first_seen_at.as_micros(), id),
            Self::Changed => (u64::MAX.saturating_sub(record.changed_at.as_micros()), id),
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(word: &str) -> std::result::Result<Self, String> {
        Self::ALL.into_iter().find(|order| order.as_str() == word).ok_or_else(|| {
            format!("`{word}` is not an order; use {}", Self::ALL.map(Self::as_str).join(", "))
        })
    }
}

/// The first records of a selection, by their ids.
#[derive(Clone, Debug, Default)]
pub struct Sorted {
    /// In order.
    pub ids: Vec<RecordId>,
    /// How many records matched in all that was read.
    pub matched: u64,
    /// Whether the time was up before all of the store was read: there may be earlier ones.
    pub is_cut: bool,
}

impl Selection {
    /// The first `limit` records in this order. Reads all of the selection, for at most `time`.
    pub async fn sorted(
        &self,
        store: &dyn Store,
        order: Order,
        limit: usize,
        time: Duration,
    ) -> Result<Sorted> {
        let started_at = Instant::now();
        let mut walk = self.clone().walk(store, None).await?;
        let (mut first, mut matched, mut is_cut) = (BTreeSet::new(), 0_u64, false);
        while let Some(page) = walk.next().await? {
            matched = matched.saturating_add(page.records.len() as u64);
            for record in &page.records {
                first.insert(order.rank(record));
                if first.len() > limit {
                    first.pop_last();
                }
            }
            if started_at.elapsed() >= time && !walk.is_at_end() {
                is_cut = true;
                break;
            }
            // On a store in memory, a walk never waits: without this, no other task's turn would come.
            tokio::task::yield_now().await;
        }
        Ok(Sorted { ids: first.into_iter().map(|(_, id)| id).collect(), matched, is_cut })
    }

    /// The records with these ids that are still meant, in the order of the ids, and the store's now.
    pub async fn load(&self, store: &dyn Store, ids: &[RecordId]) -> Result<Vec<(Arc<Record>, Timestamp)>> {
        let mut records = Vec::with_capacity(ids.len());
        for ids in ids.chunks(LOADED_AT_ONCE) {
            let Answer { now, value, .. } = store.load(ids.to_vec()).await?;
            let found = value.into_iter().filter_map(|loaded| loaded.ok().flatten());
            let found = found.filter(|record| record.is_live(now)).map(|record| record.seen_at(now));
            let found = found.filter(|record| self.matches(record, now));
            records.extend(found.map(|record| (record, now)));
        }
        Ok(records)
    }
}
