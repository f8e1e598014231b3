//! Packed entries one behind the other, in pieces: growing copies nothing, and what is no longer needed goes back to the
//! system.

use super::memory::Memory;
use super::packed::{PACKED_BYTES, Packed};

/// How many entries a piece has. So many fill pages to the last byte, and the pages that no entry has reached take no room.
const PIECE: usize = 2_048;
/// How many entries the only piece of a small shard has.
const SMALL: usize = 32;

/// Packed entries by their place. Places are counted without a gap: the last entry moves into one that is made.
#[derive(Default)]
pub(super) struct Entries {
    /// Each is full, but for the last.
    pieces: Vec<Memory>,
    count: usize,
    /// How many entries the last piece has had since it was made: so much of it takes room.
    last_used: usize,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn get(&self, place: usize) -> Option<&Packed> {
        if place >= self.count {
            return None;
        }
        self.pieces.get(place / PIECE)?.as_chunks().0.get(place % PIECE)
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Packed> {
        if place >= self.count {
            return None;
        }
        self.slot_mut(place)
    }

    fn slot_mut(&mut self, place: usize) -> Option<&mut Packed> {
        self.pieces.get_mut(place / PIECE)?.as_chunks_mut().0.get_mut(place % PIECE)
    }

    pub(super) fn push(&mut self, entry: Packed) {
        if self.count == self.room() {
            self.grow();
        }
        if let Some(slot) = self.slot_mut(self.count) {
            *slot = entry;
            self.count = self.count.saturating_add(1);
            self.last_used = self.last_used.max(self.in_last());
        }
    }

    /// Takes an entry out, and puts the last one into its place.
    pub(super) fn swap_remove(&mut self, place: usize) -> Option<Packed> {
        let last_place = self.count.checked_sub(1)?;
        let last = *self.get(last_place)?;
        let removed = std::mem::replace(self.get_mut(place)?, last);
        self.count = last_place;
        self.shrink();
        Some(removed)
    }

    /// The entries of a range of places.
    pub(super) fn range(&self, places: std::ops::Range<usize>) -> impl Iterator<Item = &Packed> {
        places.map_while(|place| self.get(place))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Packed> {
        self.pieces.iter().flat_map(|piece| piece.as_chunks().0).take(self.count)
    }

    fn room(&self) -> usize {
        let last = self.pieces.last().map_or(0, |piece| piece.len() / PACKED_BYTES);
        self.pieces.len().saturating_sub(1).saturating_mul(PIECE).saturating_add(last)
    }

    /// How many entries the last piece has.
    fn in_last(&self) -> usize {
        self.count.saturating_sub(self.pieces.len().saturating_sub(1).saturating_mul(PIECE))
    }

    fn grow(&mut self) {
        match self.pieces.len() {
            0 => self.pieces.push(piece(SMALL)),
            1 if self.count < PIECE => self.renew_last(PIECE),
            _ => self.pieces.push(piece(PIECE)),
        }
        self.last_used = self.in_last();
    }

    fn shrink(&mut self) {
        let (used, pieces) = (self.in_last(), self.pieces.len());
        if used == 0 {
            self.pieces.pop();
            self.pieces.shrink_to(pieces.saturating_mul(2));
            self.last_used = self.in_last();
        } else if used < self.last_used / 4 && self.last_used > SMALL {
            // Pages that were used once are used until they are handed back.
            self.renew_last(if pieces == 1 && used < SMALL { SMALL } else { PIECE });
        }
    }

    /// Copies the last piece into new memory with room for so many.
    fn renew_last(&mut self, entries: usize) {
        let used = self.in_last();
        if let Some(last) = self.pieces.last_mut() {
            let mut renewed = piece(entries);
            let bytes = used.saturating_mul(PACKED_BYTES);
            if let (Some(to), Some(from)) = (renewed.get_mut(..bytes), last.get(..bytes)) {
                to.copy_from_slice(from);
                *last = renewed;
                self.last_used = used;
            }
        }
    }
}

fn piece(entries: usize) -> Memory {
    Memory::zeroed(entries.saturating_mul(PACKED_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(number: usize) -> Packed {
        let mut packed = [0; PACKED_BYTES];
        packed[..8].copy_from_slice(&number.to_le_bytes());
        packed
    }

    #[test]
    fn a_piece_fills_its_pages_to_the_last_byte() {
        assert_eq!(PIECE * PACKED_BYTES % 4_096, 0);
    }

    #[test]
    fn entries_are_where_they_were_put_and_the_last_one_fills_a_gap() {
        let mut entries = Entries::default();
        for number in 0..10_000 {
            entries.push(packed(number));
            assert_eq!(entries.len(), number + 1);
        }
        assert!((0..10_000).all(|place| entries.get(place) == Some(&packed(place))));
        assert_eq!((entries.iter().count(), entries.get(10_000)), (10_000, None));
        assert_eq!(entries.swap_remove(10), Some(packed(10)));
        assert_eq!((entries.get(10), entries.len()), (Some(&packed(9_999)), 9_999));
        assert_eq!(entries.swap_remove(9_998), Some(packed(9_998)));
        assert_eq!(entries.swap_remove(9_998), None);
    }

    #[test]
    fn entries_behave_like_a_vector_while_they_come_and_go() {
        let (mut entries, mut model, mut dice) = (Entries::default(), Vec::new(), 1_u64);
        for round in 0..60_000_usize {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let roll = usize::try_from(dice >> 33).unwrap();
            let grows = (round / 10_000) % 2 == 0;
            if (roll % 4 != 0) == grows || model.is_empty() {
                entries.push(packed(round));
                model.push(packed(round));
            } else {
                let place = roll % model.len();
                assert_eq!(entries.swap_remove(place), Some(model.swap_remove(place)));
            }
        }
        assert!(entries.iter().eq(model.iter()));
        while !model.is_empty() {
            let place = model.len() / 2;
            assert_eq!(entries.swap_remove(place), Some(model.swap_remove(place)));
        }
        assert_eq!((entries.len(), entries.pieces.len()), (0, 0), "nothing is held back");
    }
}
