//! One lock's worth of entries: all whose ids begin with the same byte.

use std::collections::BTreeSet;

use super::entries::Entries;
use super::entry::{Due, Entry};
use super::packed::{ID_BYTES, Packed, due_of, id_of, packed_id};
use super::places::Places;
use crate::format::field::u64_at;
use crate::format::frame::IndexKey;

/// How many entries know their earliest due together.
pub(crate) const GROUP: usize = 64;

/// How many candidates for a page are gathered at least before the first ones among them are chosen.
const CANDIDATES_MIN: usize = 256;

/// The entries whose ids begin with the same byte.
pub(crate) struct Shard {
    /// The byte that they begin with.
    number: u8,
    secret: u64,
    places: Places,
    entries: Entries,
    /// For each group of entries, no later than the earliest due among them: what a sweep need not visit, it skips.
    earliest: Vec<Due>,
    /// What runs and what is held: few records, which people look for, so they are found without a scan.
    unsettled: BTreeSet<IndexKey>,
}

impl Shard {
    /// An empty one. Clients choose the keys behind the ids, and could choose many that fall into one slot, so a secret
    /// goes into the hashes.
    pub(super) fn new(number: u8, secret: u64) -> Self {
        Self {
            number,
            secret,
            places: Places::default(),
            entries: Entries::default(),
            earliest: Vec::new(),
            unsettled: BTreeSet::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, id: &IndexKey) -> Option<Entry> {
        let id = packed_id(id);
        let found = self.places.find(self.hash(&id), |place| self.has_at(place, &id))?;
        Some(Entry::unpack(self.number, self.entries.get(index(found.place))?))
    }

    /// Makes room for so many entries at once.
    pub(crate) fn reserve(&mut self, entries: usize) {
        if entries > self.len() {
            let hashes = self.entries.iter().map(|packed| hash(self.secret, id_of(packed)));
            self.places.rebuild_for(entries, hashes);
        }
    }

    /// Puts an entry in, and hands back the one that it replaces.
    pub(crate) fn put(&mut self, entry: &Entry) -> Option<Entry> {
        let id = packed_id(&entry.id);
        let found = self.places.find(self.hash(&id), |place| self.has_at(place, &id));
        let place = found.map_or(self.entries.len(), |found| index(found.place));
        let replaced = self.entries.get_mut(place).map(|known| std::mem::replace(known, entry.pack()));
        let replaced = replaced.map(|replaced| Entry::unpack(self.number, &replaced));
        if replaced.is_none() {
            self.append(self.hash(&id), entry.pack());
        }
        self.note_due(place, entry.due);
        if entry.is_unsettled() {
            self.unsettled.insert(entry.id);
        } else if replaced.is_some_and(|replaced| replaced.is_unsettled()) {
            self.unsettled.remove(&entry.id);
        }
        replaced
    }

    fn append(&mut self, hash: u64, packed: Packed) {
        if !self.places.has_room() {
            self.rebuild_places();
        }
        self.places.insert(hash, small(self.entries.len()));
        self.entries.push(packed);
    }

    pub(super) fn remove(&mut self, id: &IndexKey) -> Option<Entry> {
        let packed = packed_id(id);
        let found = self.places.find(self.hash(&packed), |place| self.has_at(place, &packed))?;
        self.places.remove(found, |place| {
            self.entries.get(index(place)).map_or(0, |packed| hash(self.secret, id_of(packed)))
        });
        let removed = self.take_out(index(found.place))?;
        if removed.is_unsettled() {
            self.unsettled.remove(id);
        }
        if self.places.is_oversized() {
            self.rebuild_places();
        }
        Some(removed)
    }

    /// Takes the entry at a place out. The last one moves there: the table must find it, and its new group knows its due.
    fn take_out(&mut self, place: usize) -> Option<Entry> {
        let last = self.entries.len().saturating_sub(1);
        if let Some(moved) = self.entries.get(last).filter(|_| last != place) {
            let (hash, due) = (hash(self.secret, id_of(moved)), due_of(moved));
            if let Some(known) = self.places.find(hash, |known| index(known) == last) {
                self.places.change(known, small(place));
            }
            self.note_due(place, due);
        }
        let removed = self.entries.swap_remove(place)?;
        self.earliest.truncate(self.entries.len().div_ceil(GROUP));
        self.earliest.shrink_to(self.earliest.len().saturating_mul(4));
        Some(Entry::unpack(self.number, &removed))
    }

    fn rebuild_places(&mut self) {
        let hashes = self.entries.iter().map(|packed| hash(self.secret, id_of(packed)));
        self.places.rebuild(self.entries.len().saturating_add(1), hashes);
    }

    fn note_due(&mut self, place: usize, due: Due) {
        match self.earliest.get_mut(place / GROUP) {
            Some(earliest) => *earliest = due.min(*earliest),
            None => self.earliest.push(due),
        }
    }

    /// The last group with an entry before the place `end` that may have one whose due is at or before `latest`, and how
    /// many groups behind it have none.
    pub(super) fn group_due(&self, end: usize, latest: Due) -> (Option<usize>, usize) {
        let groups = end.min(self.len()).div_ceil(GROUP);
        let group = self
            .earliest
            .get(..groups)
            .and_then(|groups| groups.iter().rposition(|earliest| *earliest <= latest));
        (group, groups.saturating_sub(group.map_or(0, |group| group.saturating_add(1))))
    }

    /// The entries of a group before the place `end` whose due is at or before `latest`, with their places, last first.
    pub(super) fn due_in(&self, group: usize, end: usize, latest: Due) -> Vec<(usize, Entry)> {
        let places = places_of(group);
        let places = places.start..places.end.min(end);
        let packed = places.clone().zip(self.entries.range(places));
        let due = packed.filter(|(_, packed)| due_of(packed) <= latest);
        let mut due: Vec<_> =
            due.map(|(place, packed)| (place, Entry::unpack(self.number, packed))).collect();
        due.reverse();
        due
    }

    /// A group was visited: from here on its earliest due is exact.
    pub(super) fn refresh_earliest(&mut self, group: usize) {
        let exact = self.entries.range(places_of(group)).map(due_of).min().unwrap_or(Due::NEVER);
        if let Some(earliest) = self.earliest.get_mut(group) {
            *earliest = exact;
        }
    }

    /// The entries from `first` on that are wanted, in the order of their ids, at most so many.
    pub(super) fn page(
        &self,
        first: Option<&IndexKey>,
        limit: usize,
        is_wanted: impl Fn(&Entry) -> bool,
    ) -> Vec<Entry> {
        let first = first.map(packed_id).filter(|_| first.is_some_and(|[byte, ..]| *byte == self.number));
        let mut found: Vec<&Packed> = Vec::new();
        // The greatest id that can still be among the first ones: most entries cost one comparison.
        let mut bound: Option<&[u8]> = None;
        for packed in self.entries.iter() {
            let id = id_of(packed);
            let is_behind =
                first.is_some_and(|first| *id < first[..]) || bound.is_some_and(|bound| id > bound);
            if is_behind || !is_wanted(&Entry::unpack(self.number, packed)) {
                continue;
            }
            found.push(packed);
            if found.len() >= limit.saturating_mul(2).max(CANDIDATES_MIN) {
                found.select_nth_unstable_by_key(limit, |packed| id_of(packed));
                found.truncate(limit);
                bound = found.iter().map(|packed| id_of(packed)).max();
            }
        }
        found.sort_unstable_by_key(|packed| id_of(packed));
        found.truncate(limit);
        found.into_iter().map(|packed| Entry::unpack(self.number, packed)).collect()
    }

    /// The entries from `first` on that run or are held and are wanted, in the order of their ids.
    pub(super) fn unsettled_from<'a>(
        &'a self,
        first: Option<&IndexKey>,
        is_wanted: impl Fn(&Entry) -> bool + 'a,
    ) -> impl Iterator<Item = Entry> + 'a {
        let from = first.copied().unwrap_or_default();
        self.unsettled.range(from..).filter_map(|id| self.get(id)).filter(move |entry| is_wanted(entry))
    }

    /// All entries, in the order of their places.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.entries.iter().map(|packed| Entry::unpack(self.number, packed))
    }

    /// Hands back the room that is not needed after all.
    pub(crate) fn fit(&mut self) {
        if self.places.has_room_to_spare() {
            self.rebuild_places();
        }
    }

    fn has_at(&self, place: u32, id: &[u8; ID_BYTES]) -> bool {
        self.entries.get(index(place)).is_some_and(|packed| id_of(packed) == id)
    }

    fn hash(&self, id: &[u8; ID_BYTES]) -> u64 {
        hash(self.secret, id)
    }
}

fn places_of(group: usize) -> std::ops::Range<usize> {
    let first = group.saturating_mul(GROUP);
    first..first.saturating_add(GROUP)
}

/// An id is a digest already: eight bytes of it are enough, once they are mixed with the secret.
fn hash(secret: u64, id: &[u8]) -> u64 {
    let product = u128::from(u64_at(id, 0) ^ secret).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let folded = product ^ (product >> 64);
    // The lower half of a product knows only the lower halves of its factors; the upper half knows all.
    u64::try_from(folded & u128::from(u64::MAX)).unwrap_or(0)
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

fn small(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shard({:#04x}, {} entries)", self.number, self.len())
    }
}

#[cfg(test)]
mod tests {
    use semel::record::StateKind;

    use super::*;

    fn entry(number: u64, due: u32, state: StateKind) -> Entry {
        let mut id = [9; 16];
        id[8..].copy_from_slice(&number.to_be_bytes());
        Entry { version: 1, id, segment: 1, offset: 64, bytes: 64, state, due: Due(due) }
    }

    fn filled(entries: u64, due: impl Fn(u64) -> u32) -> Shard {
        let mut shard = Shard::new(9, 77);
        for number in 0..entries {
            assert_eq!(shard.put(&entry(number, due(number), StateKind::Done)), None);
        }
        shard
    }

    fn due_groups(shard: &Shard, latest: u32) -> Vec<usize> {
        let mut found = Vec::new();
        let mut end = usize::MAX;
        while let (Some(group), _) = shard.group_due(end, Due(latest)) {
            found.push(group);
            end = group.saturating_mul(GROUP);
        }
        found
    }

    fn due_in(shard: &Shard, group: usize) -> Vec<u8> {
        shard.due_in(group, usize::MAX, Due(5)).iter().map(|(_, entry)| entry.id[15]).collect()
    }

    #[test]
    fn only_groups_with_an_entry_that_may_be_due_are_visited_the_last_first() {
        let mut shard = filled(300, |number| if [70, 71, 250].contains(&number) { 5 } else { 1_000 });
        assert_eq!((due_groups(&shard, 5), shard.earliest.len()), (vec![3, 1], 5));
        assert!(due_groups(&shard, 4).is_empty());
        assert_eq!(shard.group_due(usize::MAX, Due(4)), (None, 5));
        assert_eq!(
            (shard.group_due(usize::MAX, Due(5)), shard.group_due(192, Due(5))),
            ((Some(3), 1), (Some(1), 1))
        );
        assert_eq!(due_in(&shard, 1), [71, 70]);
        assert_eq!(shard.due_in(1, 71, Due(5)).len(), 1, "only what is before the end");
        shard.put(&entry(70, 900, StateKind::Done));
        shard.put(&entry(71, 900, StateKind::Done));
        assert_eq!(due_groups(&shard, 5), [3, 1], "a later due does not make the group's bound exact");
        shard.refresh_earliest(1);
        assert_eq!(due_groups(&shard, 5), [3], "a visit does");
        assert_eq!(due_groups(&shard, 900), [3, 1], "and a group is never later than its entries");
    }

    #[test]
    fn an_entry_that_moves_into_a_gap_takes_its_due_along() {
        let mut shard = filled(130, |number| if number == 129 { 5 } else { 1_000 });
        assert_eq!(due_groups(&shard, 5), [2]);
        shard.remove(&entry(0, 0, StateKind::Done).id).unwrap();
        assert_eq!(due_groups(&shard, 5), [2, 0]);
        assert_eq!((due_in(&shard, 0), due_in(&shard, 2)), (vec![129], vec![]));
        shard.remove(&entry(128, 0, StateKind::Done).id).unwrap();
        assert_eq!(shard.earliest.len(), 2, "an empty group is gone");
    }

    #[test]
    fn a_key_that_is_claimed_and_released_a_hundred_thousand_times_takes_the_room_of_one() {
        let mut shard = Shard::new(9, 77);
        for due in 1..=100_000 {
            shard.put(&entry(1, due, StateKind::Running));
            shard.put(&entry(1, due + 60, StateKind::Released));
        }
        assert_eq!((shard.len(), shard.earliest.capacity().min(5), shard.unsettled.len()), (1, 4, 0));
        assert!(shard.places.is_small());
    }

    #[test]
    fn what_runs_or_is_held_is_found_without_a_scan_until_it_is_settled() {
        let mut shard = filled(10, |_| 9);
        shard.put(&entry(3, 9, StateKind::Running));
        shard.put(&entry(20, 9, StateKind::Held));
        let found = |shard: &Shard, first: Option<&IndexKey>| -> Vec<u8> {
            shard.unsettled_from(first, |_| true).map(|entry| entry.id[15]).collect()
        };
        assert_eq!(found(&shard, None), [3, 20]);
        assert_eq!(found(&shard, Some(&entry(4, 0, StateKind::Done).id)), [20]);
        shard.put(&entry(3, 9, StateKind::Done));
        shard.remove(&entry(20, 0, StateKind::Held).id).unwrap();
        assert!(shard.unsettled.is_empty());
    }
}
