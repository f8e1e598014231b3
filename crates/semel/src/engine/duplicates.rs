//! Counts of replays and busy answers: gathered in the process, written with a later batch.
//!
//! At most a few seconds late and exact in the end; what was gathered and not yet written is lost if the
//! process dies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::driven::spawn_if_possible;
use super::semel::{Inner, Semel};
use crate::clock::Timestamp;
use crate::error::Result;
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
/// How many notes a stripe gathers before it looks whether they are of the same few records.
const NOTES_MAX: usize = 65_536;

/// Notes in the order in which they came: adding one touches nothing but the end of a list, however many records there
/// are. They are added up when they are taken, or when there are many of them.
pub(super) struct Ledger {
    stripes: Striped<Mutex<Notes>>,
    writer_runs: AtomicBool,
}

struct Notes {
    seen: Counts,
    /// How many there may be before they are added up.
    most: usize,
}

impl Default for Ledger {
    fn default() -> Self {
        let notes = || Mutex::new(Notes { seen: Counts::new(), most: NOTES_MAX });
        Self { stripes: Striped::new(notes), writer_runs: AtomicBool::new(false) }
    }
}

impl Ledger {
    fn add(&self, id: RecordId, seen: Duplicates) {
        let mut notes = lock(self.stripes.mine());
        notes.seen.push((id, seen));
        if notes.seen.len() >= notes.most {
            add_up(&mut notes.seen);
            // If that helped little, the next time must be far enough away to be worth it.
            notes.most = notes.seen.len().saturating_mul(4).max(NOTES_MAX);
        }
    }

    fn add_all(&self, counts: Counts) {
        for (id, seen) in counts {
            self.add(id, seen);
        }
    }

    /// What was gathered, in the order of ids: stores that lock records then meet each other in one order.
    fn take(&self) -> Counts {
        let mut counts = Counts::new();
        for notes in self.stripes.all() {
            counts.append(&mut std::mem::take(&mut lock(notes).seen));
        }
        add_up(&mut counts);
        counts
    }

    fn is_empty(&self) -> bool {
        self.stripes.all().all(|notes| lock(notes).seen.is_empty())
    }
}

/// Puts the notes in the order of ids, one a record.
fn add_up(counts: &mut Counts) {
    let first_bytes = |id: &RecordId| id.as_bytes().first_chunk().copied().map_or(0, u64::from_be_bytes);
    counts.sort_unstable_by(|(a, _), (b, _)| first_bytes(a).cmp(&first_bytes(b)).then_with(|| a.cmp(b)));
    counts.dedup_by(|(id, more), (known, seen)| {
        let same = id == known;
        if same {
            seen.count = seen.count.saturating_add(more.count);
            seen.last_seen_at = seen.last_seen_at.max(more.last_seen_at);
        }
        same
    });
}

impl Semel {
    /// Writes the counts of duplicates that are still only in this process. Call it before a planned stop.
    pub async fn flush(&self) -> Result<()> {
        self.inner.write_duplicates().await
    }
}

impl Inner {
    pub(super) fn note_duplicate(self: &Arc<Self>, record: &Record, now: Timestamp) {
        self.duplicates.add(record.key.id(), Duplicates { count: 1, last_seen_at: Some(now) });
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

    async fn write_duplicates(&self) -> Result<()> {
        let mut gathered = self.duplicates.take();
        while !gathered.is_empty() {
            let batch = gathered.split_off(gathered.len().saturating_sub(BATCH_RECORDS));
            let (unwritten, failed) = match self.write_batch(batch).await {
                Ok(unwritten) => (unwritten, None),
                Err((error, unwritten)) => (unwritten, Some(error)),
            };
            self.duplicates.add_all(unwritten);
            if let Some(error) = failed {
                self.duplicates.add_all(gathered);
                return Err(error);
            }
            // Callers first: counts have time.
            tokio::task::yield_now().await;
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
            // A lost reply leaves open whether these were counted: counting them again could only be wrong.
            let Ok(replies) = self.store.swap(swaps).await else { return Ok(Vec::new()) };
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
