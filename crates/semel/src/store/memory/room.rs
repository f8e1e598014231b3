//! How many records and bytes there are, and how many there may be.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How many records a memory store holds, unless told otherwise.
pub(super) const RECORDS_MAX_DEFAULT: usize = 1_000_000;
/// How many bytes a memory store holds, unless told otherwise.
pub(super) const BYTES_MAX_DEFAULT: usize = 1 << 30;

/// What happens at the bound when nothing is past its keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtBound {
    /// New claims are refused: nothing that was promised is forgotten.
    Refuse,
    /// The oldest done records of at least this age are dropped, and their replay given up.
    ForgetOldest {
        /// How old a done record must be before it may go.
        min_age: Duration,
    },
}

/// The bound, and how much of it is used.
#[derive(Debug)]
pub(super) struct Room {
    records_max: usize,
    bytes_max: usize,
    records: AtomicUsize,
    bytes: AtomicUsize,
}

impl Room {
    pub(super) fn new(records_max: usize, bytes_max: usize) -> Self {
        Self { records_max, bytes_max, records: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }

    pub(super) fn records(&self) -> usize {
        self.records.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes room for a new record, or takes none. Never lets the sum over the bound, also for a moment: two
    /// callers at the edge must not both get in.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let within =
            |max: usize, more: usize| move |used: usize| used.checked_add(more).filter(|sum| *sum <= max);
        let order = Ordering::Relaxed;
        if self.records.fetch_update(order, order, within(self.records_max, 1)).is_err() {
            return false;
        }
        if self.bytes.fetch_update(order, order, within(self.bytes_max, bytes)).is_err() {
            self.records.fetch_sub(1, order);
            return false;
        }
        true
    }

    /// Accounts for a record that changed its size. Always granted: what a running caller brings home is never
    /// refused, so bytes may pass the bound by the outcomes of what already runs.
    pub(super) fn resize(&self, from_bytes: usize, to_bytes: usize) {
        if to_bytes >= from_bytes {
            self.bytes.fetch_add(to_bytes.saturating_sub(from_bytes), Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(from_bytes.saturating_sub(to_bytes), Ordering::Relaxed);
        }
    }

    /// Gives back the room of one record.
    pub(super) fn give_back(&self, bytes: usize) {
        self.records.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
