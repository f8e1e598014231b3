//! Entries one behind the other, in pieces of one size: growing copies nothing, and memory comes in what is needed.

use super::entry::Entry;

/// How many entries a piece has.
const PIECE: usize = 64;

/// Entries by their place. Places are counted without a gap: the last entry moves into one that is made.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Each is full, but for the last.
    pieces: Vec<Vec<Entry>>,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        let last = self.pieces.last().map_or(0, Vec::len);
        self.pieces.len().saturating_sub(1).saturating_mul(PIECE).saturating_add(last)
    }

    pub(super) fn get(&self, place: usize) -> Option<&Entry> {
        self.pieces.get(place / PIECE)?.get(place % PIECE)
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Entry> {
        self.pieces.get_mut(place / PIECE)?.get_mut(place % PIECE)
    }

    pub(super) fn push(&mut self, entry: Entry) {
        if self.pieces.last().is_none_or(|piece| piece.len() >= PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.push(entry);
        }
    }

    /// Takes an entry out, and puts the last one into its place.
    pub(super) fn swap_remove(&mut self, place: usize) -> Option<Entry> {
        let piece = self.pieces.last_mut()?;
        let last = piece.pop()?;
        if piece.is_empty() {
            self.pieces.pop();
        }
        match self.get_mut(place) {
            Some(entry) => Some(std::mem::replace(entry, last)),
            // It was the last one itself.
            None => Some(last),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.pieces.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use semel::clock::Timestamp;
    use semel::record::StateKind;

    use super::*;
    use crate::format::frame::{FOREVER, Head, Kind};

    fn entry(version: u64) -> Entry {
        let (kind, moment) = (Kind::Record(StateKind::Done), Timestamp::from_micros(1));
        Entry::new(1, 64, 100, &Head { kind, version, kept_until: FOREVER, moment, id: [0; 16] }).unwrap()
    }

    #[test]
    fn entries_are_where_they_were_put_and_the_last_one_fills_a_gap() {
        let mut entries = Entries::default();
        for version in 0..1_000 {
            entries.push(entry(version));
            assert_eq!(entries.len() as u64, version + 1);
        }
        assert!((0..1_000).all(|place| entries.get(place).unwrap().version == place as u64));
        assert_eq!(entries.swap_remove(10).unwrap().version, 10);
        assert_eq!((entries.get(10).unwrap().version, entries.len()), (999, 999));
        assert_eq!(entries.swap_remove(998).unwrap().version, 998);
        while entries.len() > 0 {
            entries.swap_remove(entries.len() / 2).unwrap();
        }
        assert!(entries.swap_remove(0).is_none() && entries.iter().next().is_none());
    }
}
