//! When to look at which settled record, second by second: four bytes a record.

use std::collections::BTreeMap;

use super::entry::Due;
use super::shard::Hint;

/// Notes of what may be past its keep, by the second in which it is. Every settled record with an end to its keep has one
/// at or before that end; the ones that a later write made wrong are dropped when their time comes.
#[derive(Debug, Default)]
pub(crate) struct DueNotes {
    seconds: BTreeMap<Due, Vec<Hint>>,
}

impl DueNotes {
    pub(crate) fn add(&mut self, due: Due, hint: Hint) {
        if due < Due::NEVER {
            self.seconds.entry(due).or_default().push(hint);
        }
    }

    /// The notes of the earliest second at or before `latest`. They are gone from here: whoever takes them puts back what
    /// is left.
    pub(crate) fn take_earliest(&mut self, latest: Due) -> Option<(Due, Vec<Hint>)> {
        let earliest = self.seconds.first_entry().filter(|entry| *entry.key() <= latest)?;
        Some(earliest.remove_entry())
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
        self.seconds.first_key_value().is_some_and(|(due, _)| *due <= latest)
    }
}
