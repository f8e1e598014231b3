//! A run on disk: written, synced, and only then allowed to count.

use semel::record::StateKind;

use super::ask::{answer, refuse};
use super::judge::Writer;
use crate::format::header::Header;
use crate::index::due::DueNotes;
use crate::index::{Entry, hint_of};

impl Writer {
    /// Starts the next run, behind what is written.
    pub(super) fn begin_run(&mut self) {
        self.run.clear();
        self.run.at = self.start.tail;
        if self.start.tail == 0 {
            let header = Header {
                number: self.start.active.number,
                first_version: self.start.next_version,
                moment: self.reader.clock.now(),
                oldest: self.start.usage.oldest(),
                previous_end: self.start.previous_end,
                capacity: self.start.capacity,
            };
            self.run.bytes.extend_from_slice(&header.encode(self.start.store));
        }
        self.run.start = self.run.end();
    }

    /// Writes the run, syncs it, lets it count, and tells everybody who waited for it.
    pub(super) fn commit(&mut self) {
        if self.run.end() > self.run.start && self.reader.health.check().is_ok() {
            let file = &self.start.active.file;
            let written = file
                .write_at(&self.run.bytes, u64::from(self.run.at))
                .map_err(|error| ("written", error))
                .and_then(|()| file.sync().map_err(|error| ("synced", error)));
            if let Err((what, error)) = written {
                let name = self.start.active.name();
                self.reader
                    .health
                    .fail(format!("{name} could not be {what} at byte {}: {error}", self.run.at));
            }
        }
        if self.reader.health.check().is_err() {
            for (caller, _, _) in std::mem::take(&mut self.run.callers) {
                refuse(caller, self.reader.health.unknown());
            }
            self.run.clear();
            return;
        }
        if self.run.end() > self.run.start {
            self.start.usage.written(self.run.bytes.len() as u64);
            self.start.tail = self.run.end();
            // Before callers are answered. If it fails, the bound is lower, which changes nothing for them.
            drop(self.start.witness.note(self.start.active.number, self.start.tail));
            self.apply();
        }
        for (caller, now, told) in std::mem::take(&mut self.run.callers) {
            answer(caller, now, told);
        }
        self.begin_run();
    }

    /// Lets what is on disk now count.
    fn apply(&mut self) {
        let changed = std::mem::take(&mut self.run.changed);
        for moved in std::mem::take(&mut self.run.moved) {
            let is_current =
                self.reader.index.get(&moved.from.id).is_some_and(|known| known.is_at(&moved.from));
            if is_current && !changed.contains_key(&moved.from.id) {
                self.let_count(moved.to);
            }
        }
        for (entry, _) in changed.values() {
            self.let_count(*entry);
        }
        self.run.changed = changed;
        if let Some(oldest) = self.run.forget_before.take() {
            self.forget_before(oldest);
        }
    }

    pub(super) fn let_count(&mut self, entry: Entry) {
        let replaced = self.reader.index.put(entry);
        if let Some(replaced) = &replaced {
            self.start.usage.remove(replaced);
        }
        self.start.usage.add(&entry);
        note_due(&mut self.start.notes, replaced.as_ref(), &entry);
    }
}

/// Sees to it that an entry is looked at when its keep is over. What runs is in the unsettled, and needs no note.
pub(crate) fn note_due(notes: &mut DueNotes, replaced: Option<&Entry>, entry: &Entry) {
    let is_noted = |entry: &Entry| entry.state() != StateKind::Running;
    let is_known = replaced.is_some_and(|replaced| is_noted(replaced) && replaced.due <= entry.due);
    if is_noted(entry) && !is_known {
        notes.add(entry.due, hint_of(entry));
    }
}
