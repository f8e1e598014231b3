//! One lock's worth of records, and what finds the ones past their keep without a scan.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::room::Room;
use super::slot::{Slot, Tick};
use crate::clock::Timestamp;
use crate::id_map::IdSpread;
use crate::key::RecordId;
use crate::record::Version;

/// Names a record of a shard in four bytes, well enough to find it and check.
type Hint = u32;

#[derive(Debug, Default)]
pub(super) struct Shard {
    spread: IdSpread,
    records: HashTable<Slot>,
    /// When to look at which record, earliest first. A record has at least one entry at or before the end of
    /// its keep; the ones that a later write made wrong are skipped when their time comes.
    looks: BinaryHeap<Reverse<(Tick, Hint)>>,
    /// Done records in the order in which they were completed; filled only where they may be forgotten.
    done: VecDeque<(Tick, Hint)>,
    writes: u64,
}

impl Shard {
    /// The record with this id, if it is still kept.
    pub(super) fn get(&self, id: &RecordId, now: Timestamp) -> Option<&Slot> {
        self.find(id).filter(|slot| slot.is_kept_at(now))
    }

    /// The record with this id, also if it is past its keep.
    fn find(&self, id: &RecordId) -> Option<&Slot> {
        self.records.find(hash(self.spread, hint(id)), |slot| slot.id == *id)
    }

    /// The next version in this shard, of `shards` that take turns: it only grows, and no two records share one.
    pub(super) fn next_version(&mut self, index: usize, shards: usize) -> Version {
        self.writes = self.writes.saturating_add(1);
        let turn = self.writes.saturating_mul(shards as u64);
        Version::new(turn.saturating_add(index as u64))
    }

    /// Puts a record in, over the one that was there.
    pub(super) fn put(&mut self, mut slot: Slot, epoch: Timestamp) -> Option<Slot> {
        let (spread, id, hint) = (self.spread, slot.id, hint(&slot.id));
        match self.records.entry(
            hash(spread, hint),
            |known| known.id == id,
            |known| hash(spread, self::hint(&known.id)),
        ) {
            Entry::Occupied(mut known) => {
                let (due, looked_at) = (slot.due(epoch), known.get().looked_at);
                if due < looked_at {
                    self.looks.push(Reverse((due, hint)));
                }
                slot.looked_at = due.min(looked_at);
                Some(std::mem::replace(known.get_mut(), slot))
            }
            Entry::Vacant(vacant) => {
                slot.looked_at = slot.first_look(epoch);
                if slot.looked_at < Tick::NEVER {
                    self.looks.push(Reverse((slot.looked_at, hint)));
                }
                vacant.insert(slot);
                None
            }
        }
    }

    /// Remembers that a record was done at `at`, for the day when the oldest must go.
    pub(super) fn note_done(&mut self, id: &RecordId, at: Tick) {
        self.done.push_back((at, hint(id)));
        // Notes of lives that are over would pile up in a store that never reaches its bound.
        if self.done.len() > self.records.len().saturating_mul(2).saturating_add(64) {
            let (spread, records) = (self.spread, &self.records);
            self.done.retain(|(at, hint)| {
                records.find(hash(spread, *hint), |slot| was_done(slot, *at, *hint)).is_some()
            });
        }
    }

    /// When to look here next for something past its keep.
    pub(super) fn next_look(&self) -> Tick {
        self.looks.peek().map_or(Tick::NEVER, |Reverse((tick, _))| *tick)
    }

    /// When the oldest done record was completed.
    pub(super) fn oldest_done(&self) -> Tick {
        self.done.front().map_or(Tick::NEVER, |(tick, _)| *tick)
    }

    /// Removes at most `limit` records past their keep, looking at no more than `looks_max`.
    pub(super) fn sweep(
        &mut self,
        limit: usize,
        looks_max: usize,
        now: Timestamp,
        epoch: Timestamp,
        room: &Room,
    ) -> usize {
        let present = Tick::of(now, epoch);
        let mut removed: usize = 0;
        let mut not_yet = Vec::new();
        for _ in 0..looks_max {
            let Some(&Reverse((tick, hint))) = self.looks.peek() else { break };
            if tick > present || removed >= limit {
                break;
            }
            self.looks.pop();
            let due = |slot: &Slot| slot.looked_at == tick && self::hint(&slot.id) == hint;
            let Ok(mut found) = self.records.find_entry(hash(self.spread, hint), due) else { continue };
            if !found.get().is_kept_at(now) {
                let (slot, _) = found.remove();
                room.give_back(slot.cost_bytes);
                removed = removed.saturating_add(1);
                continue;
            }
            let next = found.get().due(epoch);
            found.get_mut().looked_at = next;
            if next < Tick::NEVER {
                not_yet.push(Reverse((next, hint)));
            }
        }
        self.looks.extend(not_yet);
        removed
    }

    /// Drops the oldest done record if it was done before `before`. Running and held ones are never here.
    pub(super) fn forget_oldest(&mut self, before: Tick, room: &Room) -> bool {
        while let Some((at, hint)) = self.done.front().copied() {
            if at >= before {
                return false;
            }
            self.done.pop_front();
            // A note without its record is of a life that is over.
            if let Ok(found) =
                self.records.find_entry(hash(self.spread, hint), |slot| was_done(slot, at, hint))
            {
                let (slot, _) = found.remove();
                room.give_back(slot.cost_bytes);
                return true;
            }
        }
        false
    }

    /// How many notes of done records there are.
    #[cfg(test)]
    pub(super) fn done_notes(&self) -> usize {
        self.done.len()
    }

    /// The ids after `after`, in order.
    pub(super) fn ids_after(&self, after: Option<RecordId>) -> Vec<RecordId> {
        let ids = self.records.iter().map(|slot| slot.id);
        let mut ids: Vec<_> = ids.filter(|id| after.is_none_or(|after| *id > after)).collect();
        ids.sort_unstable();
        ids
    }
}

fn was_done(slot: &Slot, at: Tick, hint: Hint) -> bool {
    slot.done_at == at && self::hint(&slot.id) == hint
}

/// The bytes of an id behind the ones that pick its shard.
fn hint(id: &RecordId) -> Hint {
    let [_, _, _, _, a, b, c, d, ..] = *id.as_bytes();
    u32::from_le_bytes([a, b, c, d])
}

fn hash(spread: IdSpread, hint: Hint) -> u64 {
    spread.hash(u64::from(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_lives_that_are_over_do_not_pile_up() {
        let mut shard = Shard::default();
        for tick in 0..10_000 {
            shard.note_done(&RecordId::from_bytes([7; 32]), Tick(tick));
            assert!(shard.done.len() <= 64, "{} notes of no record", shard.done.len());
        }
    }
}
