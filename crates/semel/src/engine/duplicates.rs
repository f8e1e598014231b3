//! Counts of replays and busy answers: gathered in the process, written with a later batch.
//!
//! At most a few seconds late and exact in the end; what was gathered and not yet written is lost if the
//! process dies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::driven::{spawn_if_possible, until_heard};
use super::semel::{Inner, Semel};
use crate::clock::Timestamp;
use crate::error::{ErrorKind, Result};
use crate::id_map::IdMap;
use crate::key::RecordId;
use crate::lock::lock;
use crate::machine::amend;
use crate::record::{Duplicates, Record};
use crate::store::{Swap, SwapReply};
use crate::stripe::Striped;

/// How long counts are gathered before they are written.
const GATHER: Duration = Duration::from_secs(2);
/// How many records are written at a time.
const BATCH_RECORDS: usize = 1_024;
/// How often a batch of counts is tried against other writers before it waits for the next round.
const TRIES: usize = 8;
/// How many notes a thread gathers before they are added up: few enough that whoever adds the last one hardly notices.
const NOTES_MAX: usize = 1_024;
const SHARDS: usize = 32;

/// Notes are appended to their thread's own list, which touches nothing but its end, and added up by record when it is
/// full or when counts are written.
pub(super) struct Ledger {
    notes: Striped<Mutex<Counts>>,
    sums: [Mutex<IdMap<Duplicates>>; SHARDS],
    writer_runs: AtomicBool,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { notes: Striped::default(), sums: Default::default(), writer_runs: AtomicBool::new(false) }
    }
}

impl Ledger {
    fn note(&self, id: RecordId, seen: Duplicates) {
        let full = {
            let mut notes = lock(self.notes.mine());
            notes.push((id, seen));
            if notes.len() < NOTES_MAX {
                return;
            }
            std::mem::replace(&mut *notes, Vec::with_capacity(NOTES_MAX))
        };
        self.add_up(full);
    }

    fn add_up(&self, counts: Counts) {
        for (id, seen) in counts {
            let [first, ..] = *id.as_bytes();
            let Some(shard) = self.sums.get(usize::from(first) % SHARDS) else { continue };
            let mut shard = lock(shard);
            let sum = shard.entry(id).or_default();
            sum.count = sum.count.saturating_add(seen.count);
            sum.last_seen_at = sum.last_seen_at.max(seen.last_seen_at);
        }
    }

    /// Adds up what threads still have on their lists.
    fn collect(&self) {
        for notes in self.notes.all() {
            let notes = std::mem::take(&mut *lock(notes));
            self.add_up(notes);
        }
    }

    /// The sums of one shard, in the order of ids: stores that lock records then meet each other in one order.
    fn take(shard: &Mutex<IdMap<Duplicates>>) -> Counts {
        let mut counts: Counts = std::mem::take(&mut *lock(shard)).into_iter().collect();
        counts.sort_unstable_by_key(|(id, _)| *id);
        counts
    }

    fn is_empty(&self) -> bool {
        self.notes.all().all(|notes| lock(notes).is_empty())
            && self.sums.iter().all(|shard| lock(shard).is_empty())
    }
}

impl Semel {
    /// Writes the counts of duplicates that are still only in this process. Call it before a planned stop.
    pub async fn flush(&self) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        // In a task of its own: what was taken to be written must not be lost with whoever asked for it.
        until_heard(async move { inner.write_duplicates().await }, drop).await
    }
}

impl Inner {
    pub(super) fn note_duplicate(self: &Arc<Self>, record: &Record, now: Timestamp) {
        self.duplicates.note(record.key.id(), Duplicates { count: 1, last_seen_at: Some(now) });
        if !self.duplicates.writer_runs.load(Ordering::Relaxed)
            && !self.duplicates.writer_runs.swap(true, Ordering::AcqRel)
        {
            spawn_if_possible(Arc::clone(self).write_later());
        }
    }

    /// Runs while there is something to write, and ends when there is not.
    async fn write_later(self: Arc<Self>) {
        loop {
            tokio::time::sleep(GATHER).await;
            if let Err(error) = self.write_duplicates().await {
                tracing::debug!(%error, "semel: counts of duplicates will be written later");
            }
            if self.duplicates.is_empty() {
                self.duplicates.writer_runs.store(false, Ordering::Release);
                // Something may have come between the look and the flag.
                if self.duplicates.is_empty() || self.duplicates.writer_runs.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        }
    }

    /// Writes shard by shard, batch by batch: callers come first, counts have time.
    async fn write_duplicates(&self) -> Result<()> {
        self.duplicates.collect();
        for shard in &self.duplicates.sums {
            let mut gathered = Ledger::take(shard);
            while !gathered.is_empty() {
                let batch = gathered.split_off(gathered.len().saturating_sub(BATCH_RECORDS));
                let (unwritten, failed) = match self.write_batch(batch).await {
                    Ok(unwritten) => (unwritten, None),
                    Err((error, unwritten)) => (unwritten, Some(error)),
                };
                self.duplicates.add_up(unwritten);
                if let Some(error) = failed {
                    self.duplicates.add_up(gathered);
                    return Err(error);
                }
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Writes the counts of some records; hands back those that other writers were faster than.
    async fn write_batch(&self, batch: Counts) -> BatchWritten {
        let mut left = batch;
        for _ in 0..TRIES {
            let ids = left.iter().map(|(id, _)| *id).collect();
            let found = match self.store.load(ids).await {
                Ok(found) => found,
                Err(error) => return Err((error, left)),
            };
            let (mut swaps, mut counts) = (Vec::new(), Vec::new());
            for ((id, seen), record) in left.into_iter().zip(found.value) {
                // A record that is gone has nothing to count on.
                if let (Some(record), Some(write)) =
                    (&record, amend::count_duplicates(record.as_ref(), seen, found.now).write)
                {
                    swaps.push(Swap { expected: Some(record.version), next: write.next, keep: write.keep });
                    counts.push((id, seen));
                }
            }
            if swaps.is_empty() {
                return Ok(Vec::new());
            }
            let replies = match self.store.swap(swaps).await {
                Ok(replies) => replies,
                Err(error) if error.kind() == ErrorKind::Unavailable => return Err((error, counts)),
                // Nobody knows whether these were counted: counting them again could only be wrong.
                Err(_) => return Ok(Vec::new()),
            };
            left = counts
                .into_iter()
                .zip(replies.value)
                .filter_map(|(count, reply)| matches!(reply, SwapReply::Stale(_)).then_some(count))
                .collect();
            if left.is_empty() {
                return Ok(left);
            }
        }
        Ok(left)
    }
}

type Counts = Vec<(RecordId, Duplicates)>;
type BatchWritten = std::result::Result<Counts, (crate::error::Error, Counts)>;
