//! All entries, by id and in the order of ids.

use std::sync::{Mutex, MutexGuard, PoisonError};

use semel::record::StateKind;

use super::entry::{Due, Entry};
use super::packed::shard_of;
use super::places::PLACES_MAX;
use super::shard::Shard;
use crate::format::frame::IndexKey;

/// Shards follow the first byte of an id, so that a walk through them is in the order of ids. So many of them, because
/// each grows by itself: no caller ever waits for all keys to be moved.
pub(crate) const SHARDS: usize = 256;

/// How many entries of a shard new keys leave free: more than one write batch holds, which is in no shard before it is on
/// disk.
const RESERVED: usize = 1 << 16;

/// Where every record is. It only ever shows what is on disk for good.
#[derive(Debug)]
pub(crate) struct Index {
    shards: Box<[Mutex<Shard>]>,
    /// How many entries a shard may have for a new key to be taken.
    shard_entries_max: usize,
}

/// The due entries of one group.
pub(crate) struct DueGroup {
    /// The group that was visited; `None` if none is due before the end.
    pub(crate) group: Option<usize>,
    /// How many groups were skipped.
    pub(crate) skipped: usize,
    /// Its entries that are due, with their places, last first.
    pub(crate) entries: Vec<(usize, Entry)>,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self::with_shards_of(PLACES_MAX.saturating_sub(RESERVED))
    }

    /// One that takes no new key once its shard has so many.
    pub(crate) fn with_shards_of(shard_entries_max: usize) -> Self {
        let secret = rand::random();
        let shards = (0..=u8::MAX).map(|number| Mutex::new(Shard::new(number, secret))).collect();
        Self { shards, shard_entries_max }
    }

    pub(crate) fn get(&self, id: &IndexKey) -> Option<Entry> {
        self.of(id)?.get(id)
    }

    /// Whether a key that is not there yet can be taken.
    pub(crate) fn has_room_for(&self, id: &IndexKey) -> bool {
        self.of(id).is_some_and(|shard| shard.len() < self.shard_entries_max)
    }

    /// Whether the record is where this entry says.
    pub(crate) fn is_current(&self, entry: &Entry) -> bool {
        self.get(&entry.id).is_some_and(|known| known.is_at(entry))
    }

    /// Puts an entry in, and hands back the one that it replaces.
    pub(crate) fn put(&self, entry: Entry) -> Option<Entry> {
        self.of(&entry.id)?.put(&entry)
    }

    pub(crate) fn remove(&self, id: &IndexKey) -> Option<Entry> {
        self.of(id)?.remove(id)
    }

    /// The entries from half an id on that may be in one of these states, in the order of their ids, at most so many.
    pub(crate) fn from(&self, first: Option<&IndexKey>, states: &[StateKind], limit: usize) -> Vec<Entry> {
        let is_unsettled = |state: &StateKind| matches!(state, StateKind::Running | StateKind::Held);
        let only_unsettled = !states.is_empty() && states.iter().all(is_unsettled);
        let may_be = |entry: &Entry| entry.may_be(states);
        let mut found = Vec::new();
        for shard in self.shards.get(first.map_or(0, |id| usize::from(shard_of(id)))..).unwrap_or_default() {
            let left = limit.saturating_sub(found.len());
            if left == 0 {
                break;
            }
            let shard = lock(shard);
            if only_unsettled {
                found.extend(shard.unsettled_from(first, may_be).take(left));
            } else {
                found.extend(shard.page(first, left, may_be));
            }
        }
        found
    }

    /// The entries that are due at or before `latest` in the last group of a shard that has any before the place `end`.
    pub(crate) fn due_before(&self, shard: u8, end: usize, latest: Due) -> DueGroup {
        let none = DueGroup { group: None, skipped: 0, entries: Vec::new() };
        let Some(shard) = self.shard(shard) else { return none };
        let (group, skipped) = shard.group_due(end, latest);
        let entries = group.map(|group| shard.due_in(group, end, latest)).unwrap_or_default();
        DueGroup { group, skipped, entries }
    }

    /// A group of a shard was visited, and what was due in it is gone or stays.
    pub(crate) fn refresh_earliest(&self, shard: u8, group: usize) {
        if let Some(mut shard) = self.shard(shard) {
            shard.refresh_earliest(group);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// One shard, for a reader or writer of many of its entries.
    pub(crate) fn shard(&self, number: u8) -> Option<MutexGuard<'_, Shard>> {
        self.shards.get(usize::from(number)).map(lock)
    }

    fn of(&self, id: &IndexKey) -> Option<MutexGuard<'_, Shard>> {
        self.shard(shard_of(id))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves whole entries behind: nothing is changed in two steps.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::index::GROUP;

    fn id(number: u64) -> IndexKey {
        // Few first bytes: shards with many entries, and shards with none.
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        let mut id = [0; 16];
        id[0] = [0, 100, 200][usize::try_from(number % 3).unwrap()];
        id[1..9].copy_from_slice(&spread);
        id
    }

    fn entry(number: u64, version: u64, due: u32, state: StateKind) -> Entry {
        Entry { version, id: id(number), segment: 1, offset: 64, bytes: 64, state, due: Due(due) }
    }

    struct Dice(u64);

    impl Dice {
        fn below(&mut self, most: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33).checked_rem(most).unwrap()
        }
    }

    fn sweep(index: &Index, latest: Due) -> Vec<IndexKey> {
        let mut removed = Vec::new();
        for shard in 0..=u8::MAX {
            let mut end = usize::MAX;
            loop {
                let found = index.due_before(shard, end, latest);
                removed
                    .extend(found.entries.iter().filter_map(|(_, due)| index.remove(&due.id)).map(|e| e.id));
                let Some(group) = found.group else { break };
                index.refresh_earliest(shard, group);
                end = group.saturating_mul(GROUP);
            }
            let after = index.due_before(shard, usize::MAX, latest);
            assert!(after.group.is_none(), "a second look visits nothing");
        }
        removed
    }

    #[test]
    fn it_is_a_map_in_the_order_of_ids_whatever_happens_to_it() {
        for seed in 0..6 {
            let (index, mut model, mut dice) = (Index::new(), BTreeMap::new(), Dice(seed));
            for version in 0..20_000 {
                let number = dice.below(3_000);
                match dice.below(100) {
                    0..70 => {
                        let state = StateKind::ALL[usize::try_from(dice.below(4)).unwrap()];
                        let due = u32::try_from(version / 10 + dice.below(2_000)).unwrap();
                        let due = if number % 11 == 0 { u32::MAX } else { due };
                        let entry = entry(number, version, due, state);
                        assert_eq!(index.put(entry), model.insert(entry.id, entry));
                    }
                    70..99 => assert_eq!(index.remove(&id(number)), model.remove(&id(number))),
                    _ => {
                        let latest = Due(u32::try_from(version / 10).unwrap());
                        let mut swept = sweep(&index, latest);
                        let is_due = |entry: &Entry| entry.due <= latest;
                        let mut expected: Vec<_> =
                            model.values().filter(|entry| is_due(entry)).map(|entry| entry.id).collect();
                        model.retain(|_, entry| !is_due(entry));
                        swept.sort_unstable();
                        expected.sort_unstable();
                        assert_eq!(swept, expected, "each that is due goes once");
                    }
                }
                assert_eq!(index.get(&id(number)), model.get(&id(number)).copied());
            }
            assert_eq!(index.len(), model.len());
            lists_like(&index, &model, &mut dice);
        }
    }

    fn lists_like(index: &Index, model: &BTreeMap<IndexKey, Entry>, dice: &mut Dice) {
        for states in [vec![], vec![StateKind::Held], vec![StateKind::Done], StateKind::ALL.to_vec()] {
            for _ in 0..20 {
                let first = id(dice.below(3_000));
                let limit = usize::try_from(dice.below(400)).unwrap();
                let wanted = model.range(first..).map(|(_, entry)| *entry);
                let wanted: Vec<_> = wanted.filter(|entry| entry.may_be(&states)).take(limit).collect();
                assert_eq!(index.from(Some(&first), &states, limit), wanted);
            }
            let all: Vec<_> = model.values().copied().filter(|entry| entry.may_be(&states)).collect();
            assert_eq!(index.from(None, &states, usize::MAX), all);
        }
    }

    #[test]
    fn a_full_shard_takes_no_new_key_and_the_others_do() {
        let index = Index::with_shards_of(2);
        let [a, b, c, elsewhere] = [0, 3, 6, 1].map(|number| entry(number, 1, 9, StateKind::Done));
        for entry in [a, b] {
            assert!(index.has_room_for(&entry.id));
            index.put(entry);
        }
        assert!(!index.has_room_for(&c.id) && index.has_room_for(&elsewhere.id));
        index.remove(&a.id);
        assert!(index.has_room_for(&c.id));
    }
}
