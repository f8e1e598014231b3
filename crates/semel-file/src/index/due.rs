//! When to look at which settled record, second by second: four bytes a record.

use std::collections::BTreeMap;

use super::entry::Due;
use super::shard::{IdPrefix, shard_of};

/// How many notes are put in order at a time: callers wait for it.
const ORDERED_MAX: usize = 1 << 18;

/// Notes of what may be past its keep, by the second in which it is. Every settled record with an end to its keep has one
/// at or before that end; the ones that a later write made wrong are dropped when their time comes.
#[derive(Debug, Default)]
pub(crate) struct DueNotes {
    seconds: BTreeMap<Due, Vec<IdPrefix>>,
    /// Notes whose time has come, in the order of their hints: one shard after the other is swept while its memory is at
    /// hand, which is many times faster than here and there.
    overdue: Vec<IdPrefix>,
}

impl DueNotes {
    pub(crate) fn add(&mut self, due: Due, hint: IdPrefix) {
        if due < Due::NEVER {
            self.seconds.entry(due).or_default().push(hint);
        }
    }

    /// Notes of at most so many records of one shard at or before `latest`. They are gone from here: whoever takes them adds
    /// them again if need be.
    pub(crate) fn take_overdue(&mut self, latest: Due, most: usize) -> Vec<IdPrefix> {
        if self.overdue.is_empty() {
            self.gather(latest);
        }
        let Some(last) = self.overdue.last().copied().map(shard_of) else { return Vec::new() };
        let of_shard =
            self.overdue.iter().rev().take(most).take_while(|hint| shard_of(**hint) == last).count();
        self.overdue.split_off(self.overdue.len().saturating_sub(of_shard))
    }

    fn gather(&mut self, latest: Due) {
        while self.overdue.len() < ORDERED_MAX
            && let Some(earliest) = self.seconds.first_entry().filter(|entry| *entry.key() <= latest)
        {
            self.overdue.append(&mut earliest.remove());
        }
        self.overdue.sort_unstable();
    }

    /// All notes of one second.
    pub(crate) fn take_second(&mut self, due: Due) -> Vec<IdPrefix> {
        self.seconds.remove(&due).unwrap_or_default()
    }

    /// Puts notes of one second back.
    pub(crate) fn put_back(&mut self, due: Due, hints: Vec<IdPrefix>) {
        if !hints.is_empty() {
            self.seconds.entry(due).or_default().extend(hints);
        }
    }

    /// Whether there is a note at or before `latest`.
    pub(crate) fn has(&self, latest: Due) -> bool {
        !self.overdue.is_empty() || self.seconds.first_key_value().is_some_and(|(due, _)| *due <= latest)
    }
}
