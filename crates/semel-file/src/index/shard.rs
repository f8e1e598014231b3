//! One lock's worth of entries: packed one behind the other, and found through a table of their places.

use hashbrown::HashTable;

use super::entries::Entries;
use super::entry::Entry;
use crate::format::frame::IndexKey;

/// The first bytes of an id: what the notes of [`due`](super::due) know a record by.
pub(crate) type IdPrefix = u32;

/// The hint of an id.
pub(crate) fn hint(id: &IndexKey) -> IdPrefix {
    id.first_chunk().map_or(0, |first| u32::from_be_bytes(*first))
}

/// Which shard a hint belongs to: the one of its first byte, so that a walk through the shards is in the order of ids.
pub(super) fn shard_of(hint: IdPrefix) -> u8 {
    let [first, ..] = hint.to_be_bytes();
    first
}

#[derive(Debug, Default)]
pub(super) struct Shard {
    places: HashTable<u32>,
    entries: Entries,
}

impl Shard {
    pub(super) fn get(&self, id: &IndexKey, secret: u64) -> Option<&Entry> {
        let place = self.places.find(hash(hint(id), secret), |place| self.id_at(*place) == Some(id))?;
        self.at(*place)
    }

    /// Puts an entry in, and hands back the one that it replaces.
    pub(super) fn put(&mut self, entry: Entry, secret: u64) -> Option<Entry> {
        let entries = &mut self.entries;
        let id_at = |place: u32| entries.get(index(place)).map(|entry| &entry.id);
        let found = self.places.find(hash(hint(&entry.id), secret), |place| id_at(*place) == Some(&entry.id));
        if let Some(known) = found.and_then(|place| entries.get_mut(index(*place))) {
            return Some(std::mem::replace(known, entry));
        }
        let place = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        entries.push(entry);
        let entries = &self.entries;
        let rehash =
            |place: &u32| entries.get(index(*place)).map_or(0, |known| hash(hint(&known.id), secret));
        self.places.insert_unique(hash(hint(&entry.id), secret), place, rehash);
        None
    }

    pub(super) fn remove(&mut self, id: &IndexKey, secret: u64) -> Option<Entry> {
        self.remove_with_hint(hint(id), |entry| entry.id == *id, secret)
    }

    /// Removes an entry with this hint that is wanted gone.
    pub(super) fn remove_with_hint(
        &mut self,
        wanted: IdPrefix,
        is_it: impl Fn(&Entry) -> bool,
        secret: u64,
    ) -> Option<Entry> {
        let entries = &self.entries;
        let is_it = |place: &u32| {
            entries.get(index(*place)).is_some_and(|entry| hint(&entry.id) == wanted && is_it(entry))
        };
        let (place, _) = self.places.find_entry(hash(wanted, secret), is_it).ok()?.remove();
        let removed = self.entries.swap_remove(index(place))?;
        // The last entry moved into the gap: the table must find it there.
        let last = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        if let Some(moved) = self.entries.get(index(place))
            && let Some(known) = self.places.find_mut(hash(hint(&moved.id), secret), |known| *known == last)
        {
            *known = place;
        }
        self.give_back(secret);
        Some(removed)
    }

    /// After many have gone, the table's memory goes too.
    fn give_back(&mut self, secret: u64) {
        let length = self.entries.len();
        if self.places.capacity() > 256 && length < self.places.capacity() / 4 {
            let entries = &self.entries;
            let rehash =
                |place: &u32| entries.get(index(*place)).map_or(0, |known| hash(hint(&known.id), secret));
            self.places.shrink_to(length.saturating_mul(2), rehash);
        }
    }

    /// The entries with this hint: one, as good as always.
    pub(super) fn with_hint(&self, wanted: IdPrefix, secret: u64) -> impl Iterator<Item = &Entry> {
        self.places
            .iter_hash(hash(wanted, secret))
            .filter_map(|place| self.at(*place))
            .filter(move |entry| hint(&entry.id) == wanted)
    }

    /// The entries from half an id on, in the order of their ids, at most so many.
    pub(super) fn from(&self, first: Option<&IndexKey>, limit: usize) -> Vec<Entry> {
        let mut found: Vec<Entry> =
            self.entries.iter().filter(|entry| first.is_none_or(|id| entry.id >= *id)).copied().collect();
        if found.len() > limit && limit > 0 {
            found.select_nth_unstable_by_key(limit, |entry| entry.id);
        }
        found.truncate(limit);
        found.sort_unstable_by_key(|entry| entry.id);
        found
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// What must be noted when this shard is loaded: every entry with a due.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    fn at(&self, place: u32) -> Option<&Entry> {
        self.entries.get(index(place))
    }

    fn id_at(&self, place: u32) -> Option<&IndexKey> {
        self.at(place).map(|entry| &entry.id)
    }
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// Strangers choose the keys behind the ids and could choose many that fall into one place, so a secret goes in.
fn hash(hint: IdPrefix, secret: u64) -> u64 {
    let product = (u64::from(hint) ^ secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The low half of a product knows only the low half of its factors; the high half knows all.
    product ^ (product >> 32)
}
