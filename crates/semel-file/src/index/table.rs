//! All entries, by id and in their order.

use std::sync::{Mutex, MutexGuard, PoisonError};

use semel::record::StateKind;

use super::entry::{Due, Entry};
use super::shard::{IdPrefix, Shard, hint, shard_of};
use super::unsettled::Unsettled;
use crate::format::frame::IndexKey;

/// Shards follow the first byte of an id, so that a walk through them is in the order of ids. So many of them, because
/// each grows by itself: no caller ever waits for all keys to be moved.
const SHARDS: usize = 256;

/// Where every record is. It only ever shows what is on disk for good.
#[derive(Debug)]
pub(crate) struct Index {
    secret: u64,
    shards: Box<[Mutex<Shard>]>,
    unsettled: Mutex<Unsettled>,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self {
            secret: rand::random(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            unsettled: Mutex::default(),
        }
    }

    pub(crate) fn get(&self, id: &IndexKey) -> Option<Entry> {
        self.shard(id)?.get(id, self.secret).copied()
    }

    /// Whether the record is where this entry says.
    pub(crate) fn is_current(&self, entry: &Entry) -> bool {
        self.get(&entry.id).is_some_and(|known| known.is_at(entry))
    }

    /// Puts an entry in, and hands back the one that it replaces.
    pub(crate) fn put(&self, entry: Entry) -> Option<Entry> {
        let replaced = self.shard(&entry.id)?.put(entry, self.secret);
        if is_unsettled(&entry) || replaced.as_ref().is_some_and(is_unsettled) {
            let mut unsettled = lock(&self.unsettled);
            if let Some(replaced) = &replaced {
                unsettled.remove(replaced);
            }
            unsettled.add(&entry);
        }
        replaced
    }

    pub(crate) fn remove(&self, id: &IndexKey) -> Option<Entry> {
        let removed = self.shard(id)?.remove(id, self.secret)?;
        self.leave_unsettled(&removed);
        Some(removed)
    }

    fn leave_unsettled(&self, removed: &Entry) {
        if is_unsettled(removed) {
            lock(&self.unsettled).remove(removed);
        }
    }

    /// Removes a settled entry past its due for each of these hints of one shard; hands back the hints that had none.
    pub(crate) fn remove_past(
        &self,
        hints: Vec<IdPrefix>,
        past: Due,
        mut gone: impl FnMut(&Entry),
    ) -> Vec<IdPrefix> {
        let Some(mut shard) = hints.first().and_then(|hint| self.shard_with(*hint)) else { return hints };
        let is_past = |entry: &Entry| entry.due <= past && entry.state() != StateKind::Running;
        let stays = |hint: &IdPrefix| match shard.remove_with_hint(*hint, is_past, self.secret) {
            Some(removed) => {
                self.leave_unsettled(&removed);
                gone(&removed);
                false
            }
            None => true,
        };
        hints.into_iter().filter(stays).collect()
    }

    /// The entries with this hint.
    pub(crate) fn with_hint(&self, hint: IdPrefix) -> Vec<Entry> {
        let shard = self.shard_with(hint);
        shard.map(|shard| shard.with_hint(hint, self.secret).copied().collect()).unwrap_or_default()
    }

    /// The entries from half an id on, in the order of their ids, at most so many.
    pub(crate) fn from(&self, id: Option<&IndexKey>, limit: usize) -> Vec<Entry> {
        let shard = id.map_or(0, |[first, ..]| usize::from(*first));
        let mut found = Vec::new();
        for shard in self.shards.get(shard..).unwrap_or_default() {
            let left = limit.saturating_sub(found.len());
            if left == 0 {
                break;
            }
            found.extend(lock(shard).from(id, left));
        }
        found
    }

    /// The ids of records that may be running or held, as asked for, from half an id on, in their order.
    pub(crate) fn unsettled_from(
        &self,
        states: &[StateKind],
        first: Option<&IndexKey>,
        limit: usize,
    ) -> Vec<IndexKey> {
        lock(&self.unsettled).from(states, first, limit)
    }

    /// The running records whose keep ends at or before `latest`, earliest first.
    pub(crate) fn running_due(&self, latest: Due, limit: usize) -> Vec<IndexKey> {
        lock(&self.unsettled).running_due(latest).take(limit).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Shows every entry, a shard at a time.
    pub(crate) fn each(&self, mut see: impl FnMut(&Entry)) {
        for shard in &self.shards {
            lock(shard).entries().for_each(&mut see);
        }
    }

    fn shard_with(&self, hint: IdPrefix) -> Option<MutexGuard<'_, Shard>> {
        self.shards.get(usize::from(shard_of(hint))).map(lock)
    }

    fn shard(&self, [first, ..]: &IndexKey) -> Option<MutexGuard<'_, Shard>> {
        self.shards.get(usize::from(*first)).map(lock)
    }
}

/// Whether the unsettled know it.
fn is_unsettled(entry: &Entry) -> bool {
    matches!(entry.state(), StateKind::Running | StateKind::Held)
}

/// What hints a record by.
pub(crate) fn prefix_of(entry: &Entry) -> IdPrefix {
    hint(&entry.id)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves whole entries behind: nothing is changed in two steps.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
