//! Which place belongs to an id: a hash table of four bytes a slot, 24 bits of place and a tag.
//!
//! Collisions go into the next free slot. It grows by a third, where tables of powers of two double: at worst seven bytes a
//! key instead of nine, which is a sixth of all memory. It is rebuilt from the entries, which lie one behind the other.

use super::memory::Memory;

/// How many entries can have a place.
pub(super) const PLACES_MAX: usize = 1 << PLACE_BITS;

const PLACE_BITS: u32 = 24;
const PLACE_MASK: u32 = (1 << PLACE_BITS) - 1;
const SLOT_BYTES: usize = 4;
/// At most four of five slots are taken.
const TAKEN_MAX: (usize, usize) = (4, 5);
const SLOTS_MIN: usize = 16;

/// A slot that holds nothing: no tag is zero.
const EMPTY: u32 = 0;

#[derive(Default)]
pub(super) struct Places {
    slots: Memory,
    taken: usize,
}

/// A slot that was found, and the place that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundPlace {
    slot: usize,
    pub(super) place: u32,
}

impl Places {
    /// The place with this hash that is the wanted one.
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<FoundPlace> {
        let tag = tag(hash);
        let mut slot = self.home(hash);
        loop {
            let held = self.get(slot);
            if held == EMPTY {
                return None;
            }
            let place = held & PLACE_MASK;
            if held & !PLACE_MASK == tag && is_it(place) {
                return Some(FoundPlace { slot, place });
            }
            slot = self.after(slot);
        }
    }

    /// Whether one more fits without growing.
    pub(super) fn has_room(&self) -> bool {
        self.taken.saturating_add(1).saturating_mul(TAKEN_MAX.1) <= self.len().saturating_mul(TAKEN_MAX.0)
    }

    /// Puts in a place that is not there yet. There must be [room](Self::has_room).
    pub(super) fn insert(&mut self, hash: u64, place: u32) {
        let mut slot = self.home(hash);
        while self.get(slot) != EMPTY {
            slot = self.after(slot);
        }
        self.set(slot, tag(hash) | place);
        self.taken = self.taken.saturating_add(1);
    }

    /// The same entry is in another place now.
    pub(super) fn change(&mut self, found: FoundPlace, place: u32) {
        let tag = self.get(found.slot) & !PLACE_MASK;
        self.set(found.slot, tag | place);
    }

    /// Takes a place out. What had to step aside for it moves up, so that a search may end at an empty slot.
    pub(super) fn remove(&mut self, found: FoundPlace, hash_at: impl Fn(u32) -> u64) {
        let (mut gap, mut slot) = (found.slot, self.after(found.slot));
        loop {
            let held = self.get(slot);
            if held == EMPTY {
                break;
            }
            let home = self.home(hash_at(held & PLACE_MASK));
            if self.distance(home, slot) >= self.distance(gap, slot) {
                self.set(gap, held);
                gap = slot;
            }
            slot = self.after(slot);
        }
        self.set(gap, EMPTY);
        self.taken = self.taken.saturating_sub(1);
    }

    /// Whether so few are left that the table should be made smaller.
    pub(super) fn is_oversized(&self) -> bool {
        self.len() > SLOTS_MIN && self.taken < self.len() / 4
    }

    /// Whether there is much more room than a table that grew would have.
    pub(super) fn has_room_to_spare(&self) -> bool {
        self.len() > SLOTS_MIN && self.taken.saturating_mul(2) < self.len()
    }

    /// Starts anew with room for at least so many and a third more, and takes in the places with these hashes.
    pub(super) fn rebuild(&mut self, entries: usize, hashes: impl Iterator<Item = u64>) {
        self.rebuild_for(entries.saturating_add(entries / 3), hashes);
    }

    /// The same with room for just so many.
    pub(super) fn rebuild_for(&mut self, entries: usize, hashes: impl Iterator<Item = u64>) {
        let slots = entries.saturating_mul(TAKEN_MAX.1).div_ceil(TAKEN_MAX.0).max(SLOTS_MIN);
        self.slots = Memory::zeroed(slots.saturating_mul(SLOT_BYTES));
        self.taken = 0;
        for (place, hash) in (0..).zip(hashes) {
            self.insert(hash, place);
        }
    }

    #[cfg(test)]
    pub(super) fn is_small(&self) -> bool {
        self.len() <= SLOTS_MIN
    }

    fn len(&self) -> usize {
        self.slots.len() / SLOT_BYTES
    }

    /// Where the search for a hash begins.
    fn home(&self, hash: u64) -> usize {
        let slots = self.len() as u64;
        // The upper half of the hash, scaled to the number of slots.
        usize::try_from((hash >> 32).wrapping_mul(slots) >> 32).unwrap_or(0)
    }

    fn after(&self, slot: usize) -> usize {
        let next = slot.saturating_add(1);
        if next >= self.len() { 0 } else { next }
    }

    /// How many slots a search goes from one to the other.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to.saturating_sub(from) } else { self.len().saturating_sub(from).saturating_add(to) }
    }

    fn get(&self, slot: usize) -> u32 {
        let slots: &[[u8; SLOT_BYTES]] = self.slots.as_chunks().0;
        slots.get(slot).map_or(EMPTY, |held| u32::from_le_bytes(*held))
    }

    fn set(&mut self, slot: usize, held: u32) {
        let slots: &mut [[u8; SLOT_BYTES]] = self.slots.as_chunks_mut().0;
        if let Some(place) = slots.get_mut(slot) {
            *place = held.to_le_bytes();
        }
    }
}

/// Seven bits of the lower half of a hash, and one that is always set.
fn tag(hash: u64) -> u32 {
    let [low, ..] = hash.to_le_bytes();
    u32::from(low | 1) << PLACE_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of which many collide.
    fn hash_of(number: u32) -> u64 {
        let spread = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if number.is_multiple_of(3) { spread & 0xff00_0000_0000_00ff } else { spread }
    }

    fn find(places: &Places, number: u32) -> Option<FoundPlace> {
        places.find(hash_of(number), |place| place == number)
    }

    #[test]
    fn an_empty_table_has_nothing_and_no_room() {
        let places = Places::default();
        assert_eq!(places.find(u64::MAX, |_| true), None);
        assert!(!places.has_room());
    }

    #[test]
    fn every_place_is_found_until_it_is_removed_however_many_collide() {
        let mut places = Places::default();
        for number in 0..2_000_u32 {
            if !places.has_room() {
                places.rebuild(number as usize + 1, (0..number).map(hash_of));
            }
            places.insert(hash_of(number), number);
        }
        assert!((0..2_000).all(|number| find(&places, number).is_some_and(|found| found.place == number)));
        assert_eq!(find(&places, 2_000), None);
        for number in (0..2_000).filter(|number| number % 7 != 0) {
            places.remove(find(&places, number).unwrap(), hash_of);
            assert_eq!(find(&places, number), None);
        }
        assert!((0..2_000).all(|number| find(&places, number).is_some() == (number % 7 == 0)));
        assert!(places.is_oversized());
    }

    #[test]
    fn a_place_that_changed_is_found_where_it_is_now() {
        let mut places = Places::default();
        places.rebuild(8, [5, 6].into_iter().map(hash_of));
        let found = places.find(hash_of(5), |place| place == 0).unwrap();
        places.change(found, 77);
        assert_eq!(places.find(hash_of(5), |_| true).map(|found| found.place), Some(77));
        assert_eq!(places.find(hash_of(6), |_| true).map(|found| found.place), Some(1));
    }
}
