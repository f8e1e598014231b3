//! Done records kept in memory. They cannot change before their retention ends, so replaying one asks no store.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Timestamp;
use crate::id_map::IdMap;
use crate::key::RecordId;
use crate::lock::lock;
use crate::machine::Ruling;
use crate::machine::claim::{Ask, Claimed, claim};
use crate::record::Record;

const SHARDS: usize = 16;

/// A bounded memory of done records, oldest out first.
pub(super) struct ReplayCache {
    shards: [Mutex<Shard>; SHARDS],
    records_max: usize,
    bytes_max: usize,
    /// Lets a claim see without a lock that nothing was ever kept, as over a store that refuses caching.
    is_used: AtomicBool,
}

#[derive(Default)]
struct Shard {
    known: IdMap<CachedReplay>,
    oldest_first: VecDeque<RecordId>,
    bytes: usize,
}

struct CachedReplay {
    record: Arc<Record>,
    store_now: Timestamp,
    /// When the store was asked: its `store_now` was not before this, so counting on from here can only let the
    /// retention end early.
    asked_at: Instant,
}

impl ReplayCache {
    pub(super) fn new(records_max: usize, bytes_max: usize) -> Self {
        Self {
            shards: Default::default(),
            records_max: records_max.div_ceil(SHARDS),
            bytes_max: bytes_max.div_ceil(SHARDS),
            is_used: AtomicBool::new(false),
        }
    }

    /// The record and the store's present time, if the machine would replay it without a write.
    pub(super) fn get(&self, ask: &Ask, at: Instant) -> Option<(Arc<Record>, Timestamp)> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        let id = ask.key.id();
        let mut shard = lock(self.shard(&id)?);
        let known = shard.known.get(&id)?;
        // One microsecond more than went by, for what two clocks round away.
        let went_by = at.saturating_duration_since(known.asked_at).saturating_add(Duration::from_micros(1));
        let now = known.store_now.plus(went_by);
        match claim(Some(&known.record), ask, now) {
            Ruling { answer: Claimed::Replay, write: None } if known.record.key == ask.key => {
                Some((Arc::clone(&known.record), now))
            }
            // Past its retention: whatever the store says now, this is no longer it.
            Ruling { answer: Claimed::Run, .. } => {
                shard.forget(&id);
                None
            }
            _ => None,
        }
    }

    /// Keeps a done record that the store handed out at `store_now`, asked at `asked_at`.
    pub(super) fn keep(&self, record: &Arc<Record>, store_now: Timestamp, asked_at: Instant) {
        let id = record.key.id();
        let bytes = size(record);
        if self.records_max == 0 || record.outcome().is_none() || bytes > self.bytes_max {
            return;
        }
        let Some(shard) = self.shard(&id) else { return };
        self.is_used.store(true, Ordering::Release);
        let mut shard = lock(shard);
        shard.forget(&id);
        while shard.known.len() >= self.records_max || shard.bytes.saturating_add(bytes) > self.bytes_max {
            let Some(oldest) = shard.oldest_first.pop_front() else { break };
            shard.forget(&oldest);
        }
        shard.bytes = shard.bytes.saturating_add(bytes);
        shard.oldest_first.push_back(id);
        shard.known.insert(id, CachedReplay { record: Arc::clone(record), store_now, asked_at });
        // Ids of records that were forgotten out of turn stay queued until they come up; not for ever.
        if shard.oldest_first.len() > self.records_max.saturating_mul(2) {
            let Shard { known, oldest_first, .. } = &mut *shard;
            oldest_first.retain(|id| known.contains_key(id));
        }
    }

    fn shard(&self, id: &RecordId) -> Option<&Mutex<Shard>> {
        let [first, ..] = *id.as_bytes();
        self.shards.get(usize::from(first) % SHARDS)
    }
}

impl Shard {
    fn forget(&mut self, id: &RecordId) {
        if let Some(known) = self.known.remove(id) {
            self.bytes = self.bytes.saturating_sub(size(&known.record));
        }
    }
}

/// All that the record takes, its details and references included.
fn size(record: &Record) -> usize {
    record.heap_bytes().saturating_add(size_of::<CachedReplay>()).saturating_add(size_of::<RecordId>())
}
