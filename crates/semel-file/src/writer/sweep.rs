//! Forgetting what is past its keep. Nothing is written for it: whoever opens the store later judges by the same keeps.

use semel::clock::Timestamp;
use semel::record::StateKind;
use semel::store::Swept;

use super::Writer;
use super::requests::{SweepRequest, answer, refuse};
use crate::format::frame::IndexKey;
use crate::index::Entry;
use crate::index::entry::{Due, Kept};
use crate::index::shard::IdPrefix;

/// How many records one turn removes: callers wait meanwhile.
const TURN_RECORDS: usize = 4_096;

impl Writer {
    /// Goes on with the first sweep that waits.
    pub(super) fn sweep_some(&mut self) {
        let Some(mut request) = self.sweeps.pop_front() else { return };
        if let Err(error) = self.reader.health.check() {
            return refuse(request.caller, error);
        }
        let now = self.reader.clock.now();
        let left = request.limit.saturating_sub(request.removed);
        let swept = self.sweep(left.min(TURN_RECORDS), now);
        request.removed = request.removed.saturating_add(swept.removed);
        self.reclaim.rest(&swept);
        if swept.more_left && request.removed < request.limit {
            self.sweeps.push_front(request);
        } else {
            let SweepRequest { removed, caller, .. } = request;
            answer(caller, now, Swept { removed, more_left: swept.more_left });
        }
    }

    fn sweep(&mut self, limit: usize, now: Timestamp) -> Swept {
        let past = Due::past(now);
        let mut removed: usize = 0;
        while removed < limit {
            let hints = self.notes.take_overdue(past, limit.saturating_sub(removed));
            if hints.is_empty() {
                break;
            }
            removed = removed.saturating_add(self.forget_past(hints, past));
        }
        for id in self.reader.index.running_due(past, limit.saturating_sub(removed)) {
            removed = removed.saturating_add(self.forget(&id));
        }
        removed = removed.saturating_add(self.sweep_this_second(limit.saturating_sub(removed), now));
        let more_left = removed >= limit
            && (self.notes.has(past.next()) || !self.reader.index.running_due(past.next(), 1).is_empty());
        Swept { removed, more_left }
    }

    /// Forgets the records behind notes of one shard that are past their keep; those that are not are noted down for later.
    fn forget_past(&mut self, hints: Vec<IdPrefix>, past: Due) -> usize {
        let noted = hints.len();
        let usage = self.log.usage_mut();
        let left = self.reader.index.remove_past(hints, past, |entry| usage.remove(entry));
        for hint in &left {
            for entry in self.reader.index.with_hint(*hint) {
                if entry.state() != StateKind::Running {
                    self.notes.add(entry.due, *hint);
                }
            }
        }
        noted.saturating_sub(left.len())
    }

    /// What ends in this second is looked up one by one.
    fn sweep_this_second(&mut self, limit: usize, now: Timestamp) -> usize {
        let second = Due::past(now).next();
        let mut removed: usize = 0;
        let mut not_yet = Vec::new();
        for hint in self.notes.take_second(second) {
            let mut stays = false;
            for entry in self.reader.index.with_hint(hint) {
                if entry.state() == StateKind::Running || entry.due < second {
                    continue;
                }
                if entry.due == second && removed < limit && self.is_past(&entry, now) {
                    self.forget_entry(&entry);
                    removed = removed.saturating_add(1);
                } else {
                    stays = true;
                }
            }
            if stays {
                not_yet.push(hint);
            }
        }
        self.notes.put_back(second, not_yet);
        for id in self.reader.index.running_due(second, limit.saturating_sub(removed)) {
            let Some(entry) = self.reader.index.get(&id) else { continue };
            if self.is_past(&entry, now) {
                removed = removed.saturating_add(self.forget(&id));
            }
        }
        removed
    }

    /// Whether it may go. One that cannot be read stays until the second is over, when it need not be read for that:
    /// it must not keep the others.
    fn is_past(&self, entry: &Entry, now: Timestamp) -> bool {
        match entry.kept_at(now) {
            Kept::No => true,
            Kept::Yes => false,
            Kept::Look => self.reader.kept_until(entry).is_ok_and(|until| until <= now.as_micros()),
        }
    }

    fn forget(&mut self, id: &IndexKey) -> usize {
        match self.reader.index.remove(id) {
            Some(entry) => {
                self.log.usage_mut().remove(&entry);
                1
            }
            None => 0,
        }
    }

    /// Forgets a record.
    pub(super) fn forget_entry(&mut self, entry: &Entry) {
        self.forget(&entry.id);
    }
}
