//! How much of each segment still counts.

use std::collections::VecDeque;

use crate::index::Entry;
use crate::loader::Live;

/// One segment's account.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SegmentUsage {
    /// How many bytes of it are written.
    pub(crate) bytes: u64,
    /// How many of them are the newest word on a record.
    pub(crate) live_bytes: u64,
    /// How many records that are.
    pub(crate) live: u64,
}

/// The usage of all segments, from the oldest that is needed to the one that is written.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    oldest: u32,
    segments: VecDeque<SegmentUsage>,
    total: u64,
    live: u64,
}

impl Usage {
    pub(crate) fn starting_at(oldest: u32) -> Self {
        Self { oldest, ..Self::default() }
    }

    /// The oldest segment that is needed.
    pub(crate) fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Opens the account of the next segment.
    pub(crate) fn open(&mut self) {
        self.segments.push_back(SegmentUsage::default());
    }

    /// So many more bytes are written in the newest segment.
    pub(crate) fn written(&mut self, bytes: u64) {
        if let Some(account) = self.segments.back_mut() {
            account.bytes = account.bytes.saturating_add(bytes);
            self.total = self.total.saturating_add(bytes);
        }
    }

    /// So much of a segment was found to count when the store was opened.
    pub(crate) fn add_live(&mut self, segment: u32, live: Live) {
        if let Some(account) = self.account_mut(segment) {
            account.live_bytes = account.live_bytes.saturating_add(live.bytes);
            account.live = account.live.saturating_add(live.records);
            self.live = self.live.saturating_add(live.bytes);
        }
    }

    /// An entry is the newest word on its record.
    pub(crate) fn add(&mut self, entry: &Entry) {
        let bytes = u64::from(entry.bytes());
        if let Some(account) = self.account_mut(entry.segment) {
            account.live_bytes = account.live_bytes.saturating_add(bytes);
            account.live = account.live.saturating_add(1);
            self.live = self.live.saturating_add(bytes);
        }
    }

    /// An entry is no longer the newest word on its record.
    pub(crate) fn remove(&mut self, entry: &Entry) {
        let bytes = u64::from(entry.bytes());
        if let Some(account) = self.account_mut(entry.segment) {
            account.live_bytes = account.live_bytes.saturating_sub(bytes);
            account.live = account.live.saturating_sub(1);
            self.live = self.live.saturating_sub(bytes);
        }
    }

    /// How many of the oldest segments, all but the newest, hold nothing that counts.
    pub(crate) fn dead(&self) -> u32 {
        let sealed = self.segments.len().saturating_sub(1);
        let dead = self.segments.iter().take(sealed).take_while(|account| account.live == 0).count();
        u32::try_from(dead).unwrap_or(0)
    }

    /// Closes the account of the oldest segment.
    pub(crate) fn close_oldest(&mut self) {
        if let Some(account) = self.segments.pop_front() {
            self.total = self.total.saturating_sub(account.bytes);
            self.live = self.live.saturating_sub(account.live_bytes);
            self.oldest = self.oldest.saturating_add(1);
        }
    }

    /// The usage of the oldest segment; `None` if it is the one that is written.
    pub(crate) fn oldest_sealed(&self) -> Option<(u32, SegmentUsage)> {
        let account = self.segments.front().filter(|_| self.segments.len() > 1)?;
        Some((self.oldest, *account))
    }

    /// How many bytes all segments have.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total
    }

    /// How many of them count.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live
    }

    fn account_mut(&mut self, segment: u32) -> Option<&mut SegmentUsage> {
        let place = usize::try_from(segment.checked_sub(self.oldest)?).ok()?;
        self.segments.get_mut(place)
    }
}

#[cfg(test)]
mod tests {
    use semel::clock::Timestamp;
    use semel::record::StateKind;

    use super::*;
    use crate::format::frame::{FOREVER, Head, Kind};

    fn entry(segment: u32, bytes: u32) -> Entry {
        let (kind, moment) = (Kind::Record(StateKind::Done), Timestamp::from_micros(1));
        let head = Head { kind, version: 1, kept_until: FOREVER, moment, id: [1; 16] };
        Entry::new(segment, 64, bytes, &head).unwrap()
    }

    /// Segments 5, 6 and 7 with 1,000 bytes each.
    fn three_segments() -> Usage {
        let mut usage = Usage::starting_at(5);
        for _ in 0..3 {
            usage.open();
            usage.written(1_000);
        }
        usage
    }

    #[test]
    fn an_entry_counts_in_its_own_segment_until_it_is_removed() {
        let mut usage = three_segments();
        usage.add(&entry(5, 101));
        usage.add(&entry(6, 200));
        assert_eq!(
            (usage.live_bytes(), usage.total_bytes()),
            (304, 3_000),
            "frames are padded to eight bytes"
        );
        let (number, oldest) = usage.oldest_sealed().unwrap();
        assert_eq!((number, oldest.bytes, oldest.live_bytes, oldest.live), (5, 1_000, 104, 1));
        assert_eq!(usage.dead(), 0);
        usage.remove(&entry(5, 101));
        assert_eq!((usage.live_bytes(), usage.dead()), (200, 1));
    }

    #[test]
    fn only_the_oldest_segments_in_a_row_are_dead_and_never_the_one_that_is_written() {
        let mut usage = three_segments();
        assert_eq!(usage.dead(), 2);
        usage.add(&entry(6, 80));
        assert_eq!(usage.dead(), 1);
        usage.close_oldest();
        assert_eq!((usage.oldest(), usage.total_bytes(), usage.dead()), (6, 2_000, 0));
        usage.remove(&entry(6, 80));
        usage.close_oldest();
        assert_eq!((usage.dead(), usage.oldest_sealed().is_none()), (0, true));
    }

    #[test]
    fn an_entry_of_a_segment_that_is_gone_counts_nowhere() {
        let mut usage = three_segments();
        usage.close_oldest();
        usage.add(&entry(5, 80));
        usage.add(&entry(8, 80));
        assert_eq!(usage.live_bytes(), 0);
    }
}
