//! One lock's worth of records, and what finds the ones past their keep without a scan.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::packed::{Packed, Tick};
use super::room::Room;
use crate::clock::Timestamp;
use crate::id_map::IdSpread;
use crate::key::RecordId;
use crate::record::Version;

/// Part of an id: names a record of a shard in four bytes, well enough to find it and check.
type Hint = u32;

#[derive(Debug, Default)]
pub(super) struct Shard {
    spread: IdSpread,
    records: HashTable<Packed>,
    /// When to look at which record, earliest first. A record has at least one entry at or before the end of
    /// its keep; the ones that a later write made wrong are skipped when their time comes.
    looks: BinaryHeap<Reverse<(Tick, Hint)>>,
    /// Done records in the order in which they were completed; filled only where they may be forgotten.
    done: VecDeque<(Tick, Hint)>,
    writes: u64,
}

impl Shard {
    pub(super) fn get(&self, id: &RecordId, now: Timestamp) -> Option<&Packed> {
        let bytes = id.as_bytes();
        self.records
            .find(hash(self.spread, hint(bytes)), |packed| packed.id_bytes() == bytes)
            .filter(|packed| packed.is_kept_at(now))
    }

    /// The next version in this shard, of `shards` that take turns: it only grows, and no two records share one.
    pub(super) fn next_version(&mut self, index: usize, shards: usize) -> Version {
        self.writes = self.writes.saturating_add(1);
        let turn = self.writes.saturating_mul(shards as u64);
        Version::new(turn.saturating_add(index as u64))
    }

    /// Puts a record in, over the one that was there.
    pub(super) fn put(&mut self, mut packed: Packed, epoch: Timestamp) -> Option<Packed> {
        let (spread, hint) = (self.spread, hint(packed.id_bytes()));
        let due = packed.kept_until().map_or(Tick::NEVER, |until| Tick::of(until, epoch));
        let bytes = *packed.id_bytes();
        match self.records.entry(
            hash(spread, hint),
            |known| *known.id_bytes() == bytes,
            |known| hash(spread, self::hint(known.id_bytes())),
        ) {
            Entry::Occupied(mut slot) => {
                let looked_at = slot.get().looked_at();
                if due < looked_at {
                    self.looks.push(Reverse((due, hint)));
                    packed.set_looked_at(due);
                } else {
                    packed.set_looked_at(looked_at);
                }
                Some(std::mem::replace(slot.get_mut(), packed))
            }
            Entry::Vacant(slot) => {
                packed.set_looked_at(due);
                if due < Tick::NEVER {
                    self.looks.push(Reverse((due, hint)));
                }
                slot.insert(packed);
                None
            }
        }
    }

    /// Remembers that a record was done at `at`, for the day when the oldest must go.
    pub(super) fn note_done(&mut self, id: &RecordId, at: Tick) {
        self.done.push_back((at, hint(id.as_bytes())));
        // Notes of lives that are over would pile up in a store that never reaches its bound.
        if self.done.len() > self.records.len().saturating_mul(2).saturating_add(64) {
            let (spread, records) = (self.spread, &self.records);
            self.done.retain(|(at, hint)| {
                records.find(hash(spread, *hint), |packed| was_done(packed, *at, *hint)).is_some()
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
            let due = |packed: &Packed| packed.looked_at() == tick && self::hint(packed.id_bytes()) == hint;
            let Ok(mut slot) = self.records.find_entry(hash(self.spread, hint), due) else { continue };
            if !slot.get().is_kept_at(now) {
                let (packed, _) = slot.remove();
                room.give_back(packed.cost_bytes());
                removed = removed.saturating_add(1);
                continue;
            }
            let next = slot.get().kept_until().map_or(Tick::NEVER, |until| Tick::of(until, epoch));
            slot.get_mut().set_looked_at(next);
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
            if let Ok(slot) =
                self.records.find_entry(hash(self.spread, hint), |packed| was_done(packed, at, hint))
            {
                let (packed, _) = slot.remove();
                room.give_back(packed.cost_bytes());
                return true;
            }
        }
        false
    }

    /// The ids after `after`, in order.
    pub(super) fn ids_after(&self, after: Option<RecordId>) -> Vec<RecordId> {
        let ids = self.records.iter().map(|packed| RecordId::from_bytes(*packed.id_bytes()));
        let mut ids: Vec<_> = ids.filter(|id| after.is_none_or(|after| *id > after)).collect();
        ids.sort_unstable();
        ids
    }
}

fn was_done(packed: &Packed, at: Tick, hint: Hint) -> bool {
    packed.done_at() == at && self::hint(packed.id_bytes()) == hint
}

/// The bytes of an id behind the ones that pick its shard.
fn hint(id: &[u8; 32]) -> Hint {
    let [_, _, _, _, a, b, c, d, ..] = *id;
    u32::from_le_bytes([a, b, c, d])
}

fn hash(spread: IdSpread, hint: Hint) -> u64 {
    spread.hash(u64::from(hint))
}
