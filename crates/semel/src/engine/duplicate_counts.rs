//! Counts of replays and busy answers, gathered in the process and written seldom.
//!
//! They are a courtesy to people, so they must cost next to nothing: a record is written at most once a minute, all
//! records together within a budget of bytes a second, and a flood of keys beyond [`PENDING_MAX`] is not counted at all.
//! What was gathered and not yet written is lost if the process dies.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::batcher::Batcher;
use super::swap_loop::{Guess, SwapLoop};
use super::together::ask_together;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::id_map::IdMap;
use crate::key::RecordId;
use crate::lock::lock;
use crate::machine::amend;
use crate::per_thread::PerThread;
use crate::record::{Duplicates, Record};

/// How long counts are gathered before the first of them is written.
pub(super) const GATHER: Duration = Duration::from_secs(2);
/// How long until what the budget did not allow is tried again.
pub(super) const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How long a record is left alone after its counts were written.
const PAUSE: Duration = Duration::from_mins(1);
/// How many bytes of records are written a second, if the builder does not say.
pub(super) const BYTES_A_SECOND: u64 = 256 << 10;
/// How many records may wait for their counts to be written: about what the budget writes in a second or two, so that a
/// flush costs no more than that either. A replay of a further one is not counted in its record.
const PENDING_MAX: usize = 512;
/// How many records are remembered as written in the last minute.
const REMEMBERED_MAX: usize = 65_536;
/// How many records are loaded and written at a time.
const BATCH_RECORDS: usize = 256;
/// The same within a budget.
const BATCH_WITHIN_BUDGET: usize = 32;
/// How many notes a thread gathers before they are added up.
const NOTES_MAX: usize = 256;
const SHARDS: usize = 32;

/// Notes are appended to their thread's own list, which touches nothing but its end, and added up by record when it is
/// full or when counts are written.
pub(super) struct DuplicateCounts {
    notes: PerThread<Mutex<Vec<(RecordId, Timestamp)>>>,
    sums: [Mutex<IdMap<Sum>>; SHARDS],
    /// How many sums are yet to be written.
    pending: AtomicUsize,
    /// Whether the writer has been told that there is something to write.
    is_told: AtomicBool,
    pub(super) something_to_write: Arc<Notify>,
    budget: Mutex<Budget>,
    /// One writer at a time: a flush must not miss what another has in hand.
    writing: tokio::sync::Mutex<()>,
}

/// What was gathered for one record.
struct Sum {
    duplicates: Duplicates,
    /// When it may be written.
    due: Instant,
}

struct Budget {
    bytes_a_second: u64,
    /// What is left; below zero after a large record.
    bytes: i64,
    filled_at: Option<Instant>,
}

type Counts = Vec<(RecordId, Duplicates)>;

impl DuplicateCounts {
    pub(super) fn new(bytes_a_second: u64) -> Self {
        Self {
            notes: PerThread::default(),
            sums: Default::default(),
            pending: AtomicUsize::new(0),
            is_told: AtomicBool::new(false),
            something_to_write: Arc::default(),
            budget: Mutex::new(Budget { bytes_a_second, bytes: 0, filled_at: None }),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Counts one duplicate of a record, seen at `now` on the store's clock.
    pub(super) fn note(&self, record: &Record, now: Timestamp) {
        let full = {
            let mut notes = lock(self.notes.mine());
            notes.push((record.key.id(), now));
            (notes.len() >= NOTES_MAX).then(|| std::mem::replace(&mut *notes, Vec::with_capacity(NOTES_MAX)))
        };
        if let Some(full) = full {
            self.add_notes(full);
        }
        if !self.is_told.load(Ordering::Relaxed) && !self.is_told.swap(true, Ordering::AcqRel) {
            self.something_to_write.notify_one();
        }
    }

    fn add_notes(&self, notes: Vec<(RecordId, Timestamp)>) {
        let due = Instant::now();
        for (id, at) in notes {
            self.add(id, Duplicates { count: 1, last_seen_at: Some(at) }, due);
        }
    }

    fn add(&self, id: RecordId, seen: Duplicates, due: Instant) {
        let [first, ..] = *id.as_bytes();
        let Some(shard) = self.sums.get(usize::from(first) % SHARDS) else { return };
        let mut shard = lock(shard);
        let has_room =
            self.pending.load(Ordering::Relaxed) < PENDING_MAX && shard.len() < REMEMBERED_MAX / SHARDS;
        if !has_room && !shard.contains_key(&id) {
            return;
        }
        let sum = shard.entry(id).or_insert(Sum { duplicates: Duplicates::default(), due });
        if sum.duplicates.count == 0 {
            self.pending.fetch_add(1, Ordering::Relaxed);
        }
        sum.duplicates.count = sum.duplicates.count.saturating_add(seen.count);
        sum.duplicates.last_seen_at = sum.duplicates.last_seen_at.max(seen.last_seen_at);
    }

    /// Adds up what threads still have on their lists.
    fn collect(&self) {
        for notes in self.notes.all() {
            let notes = std::mem::take(&mut *lock(notes));
            self.add_notes(notes);
        }
    }

    /// Takes what may be written, in the order of ids: stores that lock records then meet each other in one order. What
    /// was written long ago is forgotten.
    fn take(&self, which: Which) -> Counts {
        self.collect();
        let now = Instant::now();
        let mut counts = Counts::new();
        for shard in &self.sums {
            let mut shard = lock(shard);
            shard.retain(|_, sum| sum.duplicates.count > 0 || sum.due > now);
            for (id, sum) in shard.iter_mut() {
                if sum.duplicates.count > 0 && (which == Which::All || sum.due <= now) {
                    counts.push((*id, std::mem::take(&mut sum.duplicates)));
                    sum.due = now.checked_add(PAUSE).unwrap_or(now);
                    self.pending.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
        counts.sort_unstable_by_key(|(id, _)| *id);
        counts
    }

    /// Puts counts back that were not written: they are due at once.
    fn put_back(&self, counts: Counts) {
        let due = Instant::now();
        for (id, seen) in counts {
            self.add(id, seen, due);
            let [first, ..] = *id.as_bytes();
            if let Some(sum) = self
                .sums
                .get(usize::from(first) % SHARDS)
                .map(lock)
                .as_mut()
                .and_then(|shard| shard.get_mut(&id))
            {
                sum.due = due;
            }
        }
    }

    /// Whether there is nothing left to write; if so, the next note tells the writer anew.
    pub(super) fn rest(&self) -> bool {
        self.is_told.store(false, Ordering::Release);
        // A note may have come between the last look and the flag.
        self.collect();
        let is_empty = self.pending.load(Ordering::Acquire) == 0;
        if !is_empty {
            self.is_told.store(true, Ordering::Release);
        }
        is_empty
    }

    /// Writes as much as the budget allows.
    pub(super) async fn write_some(&self, batcher: &Arc<Batcher>) -> Result<()> {
        let _alone = self.writing.lock().await;
        self.write(batcher, self.take(Which::Due), Some(&self.budget)).await
    }

    /// Writes all that was gathered.
    pub(super) async fn write_all(&self, batcher: &Arc<Batcher>) -> Result<()> {
        let _alone = self.writing.lock().await;
        self.write(batcher, self.take(Which::All), None).await
    }

    async fn write(
        &self,
        batcher: &Arc<Batcher>,
        mut counts: Counts,
        budget: Option<&Mutex<Budget>>,
    ) -> Result<()> {
        while !counts.is_empty() {
            if budget.is_some_and(|budget| !lock(budget).has_some()) {
                self.put_back(counts);
                return Ok(());
            }
            // A record's size is known once it is loaded: within a budget, few are loaded that are not written then.
            let most = if budget.is_some() { BATCH_WITHIN_BUDGET } else { BATCH_RECORDS };
            let batch = counts.split_off(counts.len().saturating_sub(most));
            let Written { unwritten, failed } = write_batch(batcher, batch, budget).await;
            self.put_back(unwritten);
            if let Some(error) = failed {
                self.put_back(counts);
                return Err(error);
            }
            // Callers first: counts have time.
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Due,
    All,
}

impl Budget {
    /// Whether a record may be written, after what time has added.
    fn has_some(&mut self) -> bool {
        let now = Instant::now();
        let since = now.saturating_duration_since(self.filled_at.unwrap_or(now));
        let full = i64::try_from(self.bytes_a_second).unwrap_or(i64::MAX);
        let earned = match self.filled_at {
            None => full,
            Some(_) => {
                i64::try_from(u128::from(self.bytes_a_second).saturating_mul(since.as_micros()) / 1_000_000)
                    .unwrap_or(i64::MAX)
            }
        };
        self.filled_at = Some(now);
        self.bytes = self.bytes.saturating_add(earned).min(full);
        self.bytes > 0
    }

    /// Spends the bytes of a record, if there is anything left: a large one may take more than there is, and the next
    /// waits until that is earned.
    fn spend(&mut self, bytes: usize) -> bool {
        let has_some = self.bytes > 0;
        if has_some {
            self.bytes = self.bytes.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        has_some
    }
}

/// What became of a batch of counts.
struct Written {
    /// Certainly not written: the budget was spent, or the store did not answer.
    unwritten: Counts,
    failed: Option<Error>,
}

/// Writes the counts of some records. Counts whose reply was lost are given up: to write them again could count them twice.
async fn write_batch(batcher: &Arc<Batcher>, batch: Counts, budget: Option<&Mutex<Budget>>) -> Written {
    let ids = batch.iter().map(|(id, _)| *id).collect();
    let loaded = batcher.finish(|store| store.load(ids)).await;
    let found = match loaded.and_then(|found| found.for_each_of(batch.len())) {
        Ok(found) => found,
        Err(error) => return Written { unwritten: batch, failed: Some(error) },
    };
    let now = found.now;
    let mut written = Written { unwritten: Counts::new(), failed: None };
    let mut asks = Vec::with_capacity(batch.len());
    let mut asked = Counts::with_capacity(batch.len());
    for ((id, seen), record) in batch.into_iter().zip(found.value) {
        // A record that is gone, or cannot be read, has nothing to count on.
        let Ok(Some(record)) = record else { continue };
        if budget.is_some_and(|budget| !lock(budget).spend(record.heap_bytes())) {
            written.unwritten.push((id, seen));
            continue;
        }
        let rule = move |found: Option<&Record>, now: Timestamp| amend::count_duplicates(found, seen, now);
        let key = record.key.clone();
        asks.push(SwapLoop::new(key, Guess::Loaded(Some(record), now), rule).never_twice());
        asked.push((id, seen));
    }
    let answers = ask_together(batcher, asks).await;
    for (count, answer) in asked.into_iter().zip(answers) {
        if let Err(error) = answer
            && error.kind() == ErrorKind::Unavailable
        {
            written.unwritten.push(count);
            written.failed = Some(error);
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000);

    fn id(number: usize) -> RecordId {
        let mut bytes = [0; 32];
        // In every part of it: a shard and a place in its map are picked by different ones.
        for (byte, part) in bytes.iter_mut().zip(number.to_le_bytes().into_iter().cycle()) {
            *byte = part;
        }
        RecordId::from_bytes(bytes)
    }

    fn note(counts: &DuplicateCounts, numbers: std::ops::Range<usize>) {
        counts.add_notes(numbers.map(|number| (id(number), NOW)).collect());
    }

    fn remembered(counts: &DuplicateCounts) -> usize {
        counts.sums.iter().map(|shard| lock(shard).len()).sum()
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_keys_is_not_counted_beyond_the_bound_and_what_is_written_makes_room() {
        let counts = DuplicateCounts::new(BYTES_A_SECOND);
        for round in 0..4 {
            let first = round * PENDING_MAX * 2;
            note(&counts, first..first + PENDING_MAX + 100);
            assert_eq!(counts.pending.load(Ordering::Relaxed), PENDING_MAX);
            // One that waits already is counted all the same.
            note(&counts, first..first + 1);
            let taken = counts.take(Which::All);
            assert_eq!(taken.len(), PENDING_MAX);
            assert!(taken.iter().any(|(_, seen)| seen.count == 2));
            assert!(taken.is_sorted_by_key(|(id, _)| *id));
            assert!(counts.rest(), "nothing is left to write");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_written_is_remembered_for_a_minute_and_then_forgotten() {
        let counts = DuplicateCounts::new(BYTES_A_SECOND);
        note(&counts, 0..10);
        assert_eq!(counts.take(Which::Due).len(), 10);
        tokio::time::advance(PAUSE.saturating_sub(Duration::from_millis(1))).await;
        assert_eq!((counts.take(Which::Due).len(), remembered(&counts)), (0, 10));
        note(&counts, 0..5);
        assert_eq!(counts.take(Which::Due).len(), 0, "they are left alone for now");
        assert!(!counts.rest());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!((counts.take(Which::Due).len(), remembered(&counts)), (5, 5));
        tokio::time::advance(PAUSE).await;
        assert_eq!((counts.take(Which::Due).len(), remembered(&counts)), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_remembered_than_the_bound_and_what_is_remembered_is_counted_at_it() {
        let counts = DuplicateCounts::new(BYTES_A_SECOND);
        let rounds = REMEMBERED_MAX / PENDING_MAX + 4;
        for round in 0..rounds {
            note(&counts, round * PENDING_MAX..(round + 1) * PENDING_MAX);
            counts.take(Which::All);
        }
        assert_eq!(remembered(&counts), REMEMBERED_MAX);
        note(&counts, 0..10);
        note(&counts, (rounds - 1) * PENDING_MAX..rounds * PENDING_MAX);
        assert_eq!(counts.take(Which::All).len(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_put_back_is_due_at_once_with_what_came_meanwhile() {
        let counts = DuplicateCounts::new(BYTES_A_SECOND);
        note(&counts, 0..300);
        let taken = counts.take(Which::Due);
        note(&counts, 0..300);
        counts.put_back(taken);
        let again = counts.take(Which::Due);
        assert_eq!(again.len(), 300);
        assert!(again.iter().all(|(_, seen)| seen.count == 2 && seen.last_seen_at == Some(NOW)));
        assert!(counts.rest());
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_duplicate_stays_the_last_whatever_is_put_back_after_it() {
        let counts = DuplicateCounts::new(BYTES_A_SECOND);
        let later = NOW.plus(Duration::from_secs(1));
        note(&counts, 0..1);
        let taken = counts.take(Which::Due);
        counts.add_notes(vec![(id(0), later)]);
        counts.put_back(taken);
        assert_eq!(counts.take(Which::Due)[0].1, Duplicates { count: 2, last_seen_at: Some(later) });
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_flush_wrote_is_left_alone_for_a_minute_too() {
        let counts = DuplicateCounts::new(BYTES_A_SECOND);
        note(&counts, 0..1);
        assert_eq!(counts.take(Which::All).len(), 1);
        note(&counts, 0..1);
        tokio::time::advance(PAUSE.saturating_sub(Duration::from_millis(1))).await;
        assert_eq!(counts.take(Which::Due).len(), 0);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(counts.take(Which::Due).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_starts_full_pays_back_what_it_owes_and_never_saves_more_than_a_second() {
        let mut budget = Budget { bytes_a_second: 100, bytes: 0, filled_at: None };
        assert!(budget.has_some());
        assert!(budget.spend(150), "a large record may take more than there is");
        assert!(!budget.has_some() && !budget.spend(1), "the next one may not");
        tokio::time::advance(Duration::from_millis(400)).await;
        assert!(!budget.has_some(), "ten bytes are owed still");
        tokio::time::advance(Duration::from_millis(200)).await;
        assert!(budget.has_some());
        assert_eq!(budget.bytes, 10);
        tokio::time::advance(Duration::from_secs(1_000)).await;
        assert!(budget.has_some());
        assert_eq!(budget.bytes, 100);
    }
}
