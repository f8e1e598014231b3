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
    /// In which turn each was kept. One that was kept again since, or forgotten out of turn, is passed over.
    oldest_first: VecDeque<(u64, RecordId)>,
    turns: u64,
    bytes: usize,
}

struct CachedReplay {
    record: Arc<Record>,
    store_now: Timestamp,
    /// When the store was asked: its `store_now` was not before this, so counting on from here can only let the
    /// retention end early.
    asked_at: Instant,
    turn: u64,
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
            let Some((turn, oldest)) = shard.oldest_first.pop_front() else { break };
            if is_of_turn(&shard.known, &oldest, turn) {
                shard.forget(&oldest);
            }
        }
        let turn = shard.turns;
        shard.turns = turn.wrapping_add(1);
        shard.bytes = shard.bytes.saturating_add(bytes);
        shard.oldest_first.push_back((turn, id));
        shard.known.insert(id, CachedReplay { record: Arc::clone(record), store_now, asked_at, turn });
        // Turns that are over stay queued until they come up; not for ever.
        if shard.oldest_first.len() > self.records_max.saturating_mul(2) {
            let Shard { known, oldest_first, .. } = &mut *shard;
            oldest_first.retain(|(turn, id)| is_of_turn(known, id, *turn));
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

/// Whether the record that is known under this id is the one that was kept in this turn.
fn is_of_turn(known: &IdMap<CachedReplay>, id: &RecordId, turn: u64) -> bool {
    known.get(id).is_some_and(|known| known.turn == turn)
}

/// All that the record takes, its details and references included.
fn size(record: &Record) -> usize {
    record.heap_bytes().saturating_add(size_of::<CachedReplay>()).saturating_add(size_of::<RecordId>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::machine::claim::{Probe, Reentry, record_once};
    use crate::outcome::Outcome;
    use crate::policy::{LEASE_DEFAULT, Lapse};
    use crate::record::{PermitId, Version};

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);
    const RETENTION: Duration = Duration::from_secs(100);

    fn ask(key: &Key) -> Ask {
        Ask {
            key: key.clone(),
            fingerprint: None,
            label: None,
            permit_id: PermitId::new(7),
            owner: "me".into(),
            reentry: Reentry::Refused,
            lease: LEASE_DEFAULT,
            retention: RETENTION,
            lapse: Lapse::Rerun,
            attempts_max: None,
            first_event: None,
            probe: Probe::None,
        }
    }

    /// Keys whose records share a shard.
    fn neighbours(count: usize) -> Vec<Key> {
        let keys = (100..).filter_map(|name: u32| Key::new("charge", &name.to_string()).ok());
        let in_first =
            |key: &Key| key.id().as_bytes().first().is_some_and(|first| usize::from(*first) % SHARDS == 0);
        keys.filter(in_first).take(count).collect()
    }

    fn done(key: &Key) -> Option<Arc<Record>> {
        let ruling = record_once(None, &ask(key), &Outcome::success("paid"), NOW);
        Some(ruling.write?.next.stamp(Version::new(1), NOW))
    }

    fn kept(cache: &ReplayCache, keys: &[Key], at: Instant) -> usize {
        keys.iter()
            .filter(|key| cache.get(&Ask { permit_id: PermitId::new(8), ..ask(key) }, at).is_some())
            .count()
    }

    fn bytes(cache: &ReplayCache) -> usize {
        cache.shards.iter().map(|shard| lock(shard).bytes).sum()
    }

    fn queued(cache: &ReplayCache) -> usize {
        cache.shards.iter().map(|shard| lock(shard).oldest_first.len()).sum()
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_that_is_kept_again_and_again_takes_its_bytes_once() {
        let (keys, at) = (neighbours(3), Instant::now());
        let records: Vec<_> = keys.iter().filter_map(done).collect();
        let each = size(&records[0]);
        let cache = ReplayCache::new(4 * SHARDS, 3 * each * SHARDS);
        for _ in 0..100 {
            for record in &records {
                cache.keep(record, NOW, at);
            }
        }
        assert_eq!((kept(&cache, &keys, at), bytes(&cache)), (3, 3 * each), "there is room for just three");
        assert!(queued(&cache) <= 8, "{}", queued(&cache));
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_goes_first_when_one_more_comes() {
        let (keys, at) = (neighbours(4), Instant::now());
        let cache = ReplayCache::new(3 * SHARDS, 1 << 20);
        for record in keys.iter().filter_map(done) {
            cache.keep(&record, NOW, at);
        }
        assert_eq!((kept(&cache, &keys[..1], at), kept(&cache, &keys[1..], at)), (0, 3));
        assert_eq!(queued(&cache), 3);
        let left: usize = keys[1..].iter().filter_map(done).map(|record| size(&record)).sum();
        assert_eq!(bytes(&cache), left, "what went gave its bytes back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_that_was_kept_again_is_no_longer_the_oldest() {
        let (keys, at) = (neighbours(4), Instant::now());
        let cache = ReplayCache::new(3 * SHARDS, 1 << 20);
        let records: Vec<_> = keys.iter().filter_map(done).collect();
        for record in [&records[0], &records[1], &records[2], &records[0], &records[3]] {
            cache.keep(record, NOW, at);
        }
        assert_eq!((kept(&cache, &keys[..1], at), kept(&cache, &keys[1..2], at)), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_past_its_retention_gives_its_bytes_back() {
        let (keys, at) = (neighbours(1), Instant::now());
        let cache = ReplayCache::new(3 * SHARDS, 1 << 20);
        for record in keys.iter().filter_map(done) {
            cache.keep(&record, NOW, at);
            cache.keep(&record, NOW, at);
        }
        let end = at + RETENTION;
        assert_eq!(kept(&cache, &keys, end - Duration::from_micros(2)), 1);
        assert_ne!(bytes(&cache), 0);
        assert_eq!(kept(&cache, &keys, end - Duration::from_micros(1)), 0, "a microsecond early, never late");
        assert_eq!(bytes(&cache), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_of_just_the_bound_is_kept_and_a_larger_one_is_not() {
        let (keys, at) = (neighbours(1), Instant::now());
        for record in keys.iter().filter_map(done) {
            for (bytes_max, expected) in [(size(&record), 1), (size(&record) - 1, 0)] {
                let cache = ReplayCache::new(SHARDS, bytes_max * SHARDS);
                cache.keep(&record, NOW, at);
                assert_eq!(kept(&cache, &keys, at), expected);
            }
        }
    }
}
