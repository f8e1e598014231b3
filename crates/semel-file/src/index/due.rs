//! When to look at which settled record, second by second: four bytes a record.

use std::collections::BTreeMap;

use super::entry::Due;
use super::shard::Hint;

/// How many notes are put in order at a time: callers wait for it.
const ORDERED_MAX: usize = 1 << 18;

/// Notes of what may be past its keep, by the second in which it is. Every settled record with an end to its keep has one
/// at or before that end; the ones that a later write made wrong are dropped when their time comes.
#[derive(Debug, Default)]
pub(crate) struct DueNotes {
    seconds: BTreeMap<Due, Vec<Hint>>,
    /// Notes whose time has come, in the order of their hints: one shard after the other is swept while its memory is at
    /// hand, which is many times faster than here and there.
    overdue: Vec<Hint>,
}

impl DueNotes {
    pub(crate) fn add(&mut self, due: Due, hint: Hint) {
        if due < Due::NEVER {
            self.seconds.entry(due).or_default().push(hint);
        }
    }

    /// A note of something at or before `latest`. It is gone from here: whoever takes it adds it again if need be.
    pub(crate) fn take_overdue(&mut self, latest: Due) -> Option<Hint> {
        if self.overdue.is_empty() {
            self.gather(latest);
        }
        self.overdue.pop()
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
    pub(crate) fn take_second(&mut self, due: Due) -> Vec<Hint> {
        self.seconds.remove(&due).unwrap_or_default()
    }

    /// Puts notes of one second back.
    pub(crate) fn put_back(&mut self, due: Due, hints: Vec<Hint>) {
        if !hints.is_empty() {
            self.seconds.entry(due).or_default().extend(hints);
        }
    }

    /// Whether there is a note at or before `latest`.
    pub(crate) fn has(&self, latest: Due) -> bool {
        !self.overdue.is_empty() || self.seconds.first_key_value().is_some_and(|(due, _)| *due <= latest)
    }
}
