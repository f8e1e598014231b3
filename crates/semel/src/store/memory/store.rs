//! The four methods, and the bound that they keep.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::room::{AtBound, BYTES_MAX_DEFAULT, RECORDS_MAX_DEFAULT, Room};
use super::shard::Shard;
use super::slot::{Slot, Tick, draft_cost_bytes};
use crate::clock::{Clock, SystemClock, Timestamp, micros};
use crate::key::RecordId;
use crate::lock::lock;
use crate::record::Record;
use crate::store::{Answer, Loaded, Page, Reply, Scan, Store, Swap, SwapReplies, SwapReply, Swaps, Swept};

const SHARDS: usize = 128;
/// How many records a claim at the bound may have to remove before it is answered: enough to pay for the
/// claims behind it, few enough to stay unnoticed.
const ROOM_AT_BOUND: usize = 8;
/// How many due records a claim at the bound may have to look at.
const LOOKS_AT_BOUND: usize = 32;
/// How often a claim at the bound tries to make room before it is refused.
const TRIES_AT_BOUND: usize = 4;
/// How many records a page of a walk looks at, however few of them are wanted: whoever asked is waited for meanwhile.
const LOOKED_AT_MAX: usize = 4_096;

/// The store inside a process. What it holds is gone when the process is; until then it keeps every promise.
///
/// ```
/// use semel::store::MemoryStore;
///
/// let store = MemoryStore::new();
/// let small = MemoryStore::builder().records_max(10_000).bytes_max(16 << 20).build();
/// # let _ = (store, small);
/// ```
pub struct MemoryStore {
    shards: Box<[Mutex<Shard>]>,
    /// When to look into each shard for something past its keep; read without its lock.
    next_looks: Box<[AtomicU32]>,
    /// When each shard's oldest done record was completed; read without its lock.
    oldest_done: Box<[AtomicU32]>,
    room: Room,
    at_bound: AtBound,
    forgotten: AtomicU64,
    sweep_from: AtomicU32,
    clock: Arc<dyn Clock>,
    epoch: Timestamp,
}

/// How a memory store is to be.
pub struct MemoryStoreBuilder {
    records_max: usize,
    bytes_max: usize,
    at_bound: AtBound,
    clock: Arc<dyn Clock>,
}

impl MemoryStoreBuilder {
    /// How many records there may be; 1,000,000 unless said.
    #[must_use]
    pub fn records_max(mut self, records: usize) -> Self {
        self.records_max = records;
        self
    }

    /// How many bytes the records may take; 1 GiB unless said. Outcomes of what already runs are always
    /// taken, so they may pass the bound; new claims are refused from there on.
    #[must_use]
    pub fn bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// At the bound, drop the oldest done records that are at least `min_age` old instead of refusing new claims.
    /// Their replay is given up: a retry that comes later than that runs again.
    #[must_use]
    pub fn forget_oldest(mut self, min_age: Duration) -> Self {
        self.at_bound = AtBound::ForgetOldest { min_age };
        self
    }

    /// Where the store's time comes from; the machine's clock unless said.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The store.
    pub fn build(self) -> MemoryStore {
        let ticks = || (0..SHARDS).map(|_| AtomicU32::new(Tick::NEVER.0)).collect();
        MemoryStore {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            next_looks: ticks(),
            oldest_done: ticks(),
            room: Room::new(self.records_max, self.bytes_max),
            at_bound: self.at_bound,
            forgotten: AtomicU64::new(0),
            sweep_from: AtomicU32::new(0),
            epoch: self.clock.now(),
            clock: self.clock,
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// A store with the default bounds, on the machine's clock.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A store with bounds of your own.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder {
            records_max: RECORDS_MAX_DEFAULT,
            bytes_max: BYTES_MAX_DEFAULT,
            at_bound: AtBound::Refuse,
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// How many records it holds.
    pub fn records(&self) -> usize {
        self.room.records()
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        self.room.bytes()
    }

    /// How many done records were dropped before their time, under [`forget_oldest`](MemoryStoreBuilder::forget_oldest).
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    fn shard(&self, index: usize) -> Option<MutexGuard<'_, Shard>> {
        self.shards.get(index).map(lock)
    }

    /// What became of the swap, and when.
    fn swap_one(&self, swap: Swap) -> (SwapReply, Timestamp) {
        let id = swap.id();
        let index = shard_of(&id);
        let mut now = self.epoch;
        for _ in 0..=TRIES_AT_BOUND {
            let Some(mut shard) = self.shard(index) else { break };
            now = self.clock.now();
            let found = shard.get(&id, now);
            if found.map(|slot| slot.record.version) != swap.expected {
                return (SwapReply::Stale(found.map(|slot| Arc::clone(&slot.record))), now);
            }
            if found.is_some() {
                return (SwapReply::Swapped(self.write(&mut shard, swap, New::No, now)), now);
            }
            if self.room.take(draft_cost_bytes(&swap.next)) {
                return (SwapReply::Swapped(self.write(&mut shard, swap, New::Yes, now)), now);
            }
            drop(shard);
            if !self.make_room() {
                break;
            }
        }
        (SwapReply::Full, now)
    }

    /// Stamps and keeps the record, and accounts for what it costs and what it replaces. Room for a new one is taken
    /// before.
    fn write(&self, shard: &mut Shard, swap: Swap, new: New, now: Timestamp) -> Arc<Record> {
        let id = swap.id();
        let index = shard_of(&id);
        let version = shard.next_version(index, SHARDS);
        let record = swap.next.stamp(version, now);
        let slot = Slot::new(Arc::clone(&record), swap.keep.until(now), self.epoch);
        let (bytes, done_at) = (slot.cost_bytes, slot.done_at);
        let old = shard.put(slot, self.epoch);
        match (new, &old) {
            (New::No, old) => self.room.resize(old.as_ref().map_or(0, |old| old.cost_bytes), bytes),
            // It was past its keep, and gave way to the new life of its key.
            (New::Yes, Some(gone)) => self.room.give_back(gone.cost_bytes),
            (New::Yes, None) => {}
        }
        let newly_done = done_at < Tick::NEVER && old.is_none_or(|old| old.done_at != done_at);
        if newly_done && self.at_bound != AtBound::Refuse {
            shard.note_done(&id, done_at);
        }
        self.publish(shard, index);
        record
    }

    fn publish(&self, shard: &Shard, index: usize) {
        let set = |ticks: &[AtomicU32], tick: Tick| {
            if let Some(known) = ticks.get(index)
                && known.load(Ordering::Relaxed) != tick.0
            {
                known.store(tick.0, Ordering::Relaxed);
            }
        };
        set(&self.next_looks, shard.next_look());
        set(&self.oldest_done, shard.oldest_done());
    }

    /// Makes room for a record, in whichever shard there is something to give up.
    fn make_room(&self) -> bool {
        let now = self.clock.now();
        for _ in 0..TRIES_AT_BOUND {
            let Some((index, _)) = earliest(&self.next_looks, Tick::of(now, self.epoch)) else { break };
            let Some(mut shard) = self.shard(index) else { break };
            let removed = shard.sweep(ROOM_AT_BOUND, LOOKS_AT_BOUND, now, self.epoch, &self.room);
            self.publish(&shard, index);
            if removed > 0 {
                return true;
            }
        }
        match self.at_bound {
            AtBound::Refuse => false,
            AtBound::ForgetOldest { min_age } => self.forget_oldest(min_age, now),
        }
    }

    fn forget_oldest(&self, min_age: Duration, now: Timestamp) -> bool {
        let before =
            Tick::of(Timestamp::from_micros(now.as_micros().saturating_sub(micros(min_age))), self.epoch);
        let Some((index, _)) = earliest(&self.oldest_done, before) else { return false };
        let Some(mut shard) = self.shard(index) else { return false };
        let forgotten = shard.forget_oldest(before, &self.room);
        self.publish(&shard, index);
        if forgotten {
            self.forgotten.fetch_add(1, Ordering::Relaxed);
        }
        forgotten
    }

    fn sweep_now(&self, limit: usize) -> Swept {
        let now = self.clock.now();
        let present = Tick::of(now, self.epoch);
        // Starts at another shard each time, so that a small limit does not starve the last ones.
        let first = self.sweep_from.fetch_add(1, Ordering::Relaxed) as usize;
        let mut swept = Swept::default();
        for index in (0..SHARDS).map(|turn| turn.wrapping_add(first) % SHARDS) {
            let due = |ticks: &AtomicU32| ticks.load(Ordering::Relaxed) <= present.0;
            if !self.next_looks.get(index).is_some_and(due) {
                continue;
            }
            let Some(mut shard) = self.shard(index) else { continue };
            let left = limit.saturating_sub(swept.removed);
            if left == 0 {
                swept.more_left = true;
                break;
            }
            let removed = shard.sweep(left, usize::MAX, now, self.epoch, &self.room);
            self.publish(&shard, index);
            swept.removed = swept.removed.saturating_add(removed);
            swept.more_left |= removed == left && shard.next_look() <= present;
        }
        swept
    }

    fn scan_now(&self, scan: &Scan) -> Page {
        let mut page = Page::default();
        let first = scan.after.as_ref().map_or(0, shard_of);
        let (mut last, mut looks_left) = (scan.after, LOOKED_AT_MAX.max(scan.limit));
        for index in first..SHARDS {
            let ids = self.shard(index).map(|shard| shard.ids_after(scan.after)).unwrap_or_default();
            for id in ids {
                if page.records.len() >= scan.limit || looks_left == 0 {
                    page.next = last;
                    return page;
                }
                (last, looks_left) = (Some(id), looks_left.saturating_sub(1));
                // The lock is taken for each record anew: a walk must not hold up claims.
                if let Some(record) = self.load_one(&id)
                    && scan.filter.matches(&record, self.clock.now())
                {
                    page.records.push(record);
                }
            }
        }
        page
    }

    fn load_one(&self, id: &RecordId) -> Option<Arc<Record>> {
        let shard = self.shard(shard_of(id))?;
        shard.get(id, self.clock.now()).map(|slot| Arc::clone(&slot.record))
    }

    /// An answer with the present moment. That is read last, so it is never before one that the answer speaks of.
    fn answer<T>(&self, value: T) -> Reply<T> {
        Reply::ready(Ok(Answer::new(self.clock.now(), value)))
    }
}

impl Store for MemoryStore {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        let mut latest = None;
        let replies = batch.into_iter().map(|swap| {
            let (reply, now) = self.swap_one(swap);
            latest = Some(now);
            reply
        });
        let replies = replies.collect();
        // The last read is not before any other, and each was made under the lock of the record it speaks of.
        Reply::ready(Ok(Answer::new(latest.unwrap_or_else(|| self.clock.now()), replies)))
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        self.answer(ids.iter().map(|id| Ok(self.load_one(id))).collect())
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.answer(self.sweep_now(limit))
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.answer(self.scan_now(&scan))
    }
}

/// Whether a write makes a record that was not there, or was past its keep.
#[derive(Clone, Copy)]
enum New {
    Yes,
    No,
}

/// Shards follow the order of ids, so that a walk through them is in that order.
fn shard_of(id: &RecordId) -> usize {
    let [first, ..] = id.as_bytes();
    usize::from(first >> 1)
}

/// The shard with the earliest tick, if that is not after `latest`.
fn earliest(ticks: &[AtomicU32], latest: Tick) -> Option<(usize, Tick)> {
    ticks
        .iter()
        .map(|tick| Tick(tick.load(Ordering::Relaxed)))
        .enumerate()
        .min_by_key(|(_, tick)| *tick)
        .filter(|(_, tick)| *tick <= latest)
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryStore({} records, {} bytes)", self.records(), self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claim, Key, Outcome, Semel};

    #[tokio::test]
    async fn a_done_record_that_is_written_again_is_noted_once() {
        let store = Arc::new(MemoryStore::builder().forget_oldest(Duration::ZERO).build());
        let semel = Semel::builder_shared(Arc::<MemoryStore>::clone(&store)).no_sweep().build().unwrap();
        let key = Key::new("charge", "order-7").unwrap();
        drop(semel.record_once(Claim::new(&key), Outcome::success("paid")).await.unwrap());
        for count in 1..=200 {
            drop(semel.claim(Claim::new(&key)).await.unwrap());
            semel.flush().await.unwrap();
            assert_eq!(semel.get(&key).await.unwrap().unwrap().duplicates.count, count);
        }
        let notes: usize = store.shards.iter().map(|shard| lock(shard).done_notes()).sum();
        assert_eq!(notes, 1);
    }
}
