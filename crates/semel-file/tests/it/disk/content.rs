//! What is in one file: as it reads now, and as it is sure to be after a power cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::survival::Survival;
use crate::dice::Dice;

/// What a disk writes as one: a sector is found whole, old or new.
pub(crate) const SECTOR_BYTES: usize = 512;

/// One file's bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// As every read sees it.
    present: Arc<Vec<u8>>,
    /// As it was at the last sync.
    durable: Arc<Vec<u8>>,
    /// What happened since, in order.
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Arc<[u8]> },
    SetBytes(usize),
}

impl Content {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let bytes = Arc::new(bytes);
        Self { present: Arc::clone(&bytes), durable: bytes, changes: Vec::new() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.present
    }

    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.change(Change::Write { offset, bytes: bytes.into() });
    }

    pub(crate) fn set_bytes(&mut self, bytes: usize) {
        self.change(Change::SetBytes(bytes));
    }

    fn change(&mut self, change: Change) {
        change.apply(Arc::make_mut(&mut self.present));
        self.changes.push(change);
    }

    pub(crate) fn sync(&mut self) {
        let durable = Arc::make_mut(&mut self.durable);
        for change in self.changes.drain(..) {
            change.apply(durable);
        }
    }

    /// One byte changed by nobody.
    pub(crate) fn flip(&mut self, offset: usize, mask: u8) {
        Arc::make_mut(&mut self.present)[offset] ^= mask;
        self.durable = Arc::clone(&self.present);
        self.changes.clear();
    }

    /// As it is found after a power cut.
    pub(crate) fn cut(&self, survival: Survival, dice: &mut Dice) -> Self {
        if self.changes.is_empty() {
            return self.clone();
        }
        let lengths = self.lengths();
        let longest = lengths.iter().copied().max().unwrap_or_default();
        let mut found = Vec::clone(&self.durable);
        found.resize(longest, 0);
        let lasting = self.lasting(longest, survival, dice);
        for (number, change) in self.changes.iter().enumerate() {
            for sector in change.sectors(longest) {
                if lasting.get(&sector).is_some_and(|last| last.contains(&number)) {
                    change.apply_to_sector(sector, &mut found);
                }
            }
        }
        found.resize(lengths[survival.of(self.changes.len(), dice)], 0);
        Self::new(found)
    }

    /// How long the file was at the last sync and after each change since.
    fn lengths(&self) -> Vec<usize> {
        let mut lengths = vec![self.durable.len()];
        for change in &self.changes {
            let last = lengths.last().copied().unwrap_or_default();
            lengths.push(match change {
                Change::Write { offset, bytes } => last.max(offset + bytes.len()),
                Change::SetBytes(bytes) => *bytes,
            });
        }
        lengths
    }

    /// For each sector that changed, the changes of it that last.
    fn lasting(&self, longest: usize, survival: Survival, dice: &mut Dice) -> BTreeMap<usize, Vec<usize>> {
        let mut chains: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, change) in self.changes.iter().enumerate() {
            for sector in change.sectors(longest) {
                chains.entry(sector).or_default().push(number);
            }
        }
        for chain in chains.values_mut() {
            chain.truncate(survival.of(chain.len(), dice));
        }
        chains
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(bytes);
            }
            Self::SetBytes(bytes) => content.resize(*bytes, 0),
        }
    }

    /// The sectors that it touches, in a file that was never longer than `longest`.
    fn sectors(&self, longest: usize) -> std::ops::Range<usize> {
        match self {
            Self::Write { offset, bytes } if !bytes.is_empty() => {
                offset / SECTOR_BYTES..(offset + bytes.len()).div_ceil(SECTOR_BYTES)
            }
            Self::Write { .. } => 0..0,
            Self::SetBytes(bytes) => bytes / SECTOR_BYTES..longest.div_ceil(SECTOR_BYTES),
        }
    }

    /// The same as `apply`, for one sector and without a change of length.
    fn apply_to_sector(&self, sector: usize, content: &mut [u8]) {
        let start = sector * SECTOR_BYTES;
        let end = content.len().min(start + SECTOR_BYTES);
        match self {
            Self::Write { offset, bytes } => {
                let (from, until) = (start.max(*offset), end.min(offset + bytes.len()));
                content[from..until].copy_from_slice(&bytes[from - offset..until - offset]);
            }
            Self::SetBytes(bytes) => content[start.max(*bytes).min(end)..end].fill(0),
        }
    }
}
