//! Getting rid of segments that hardly count: the oldest first, always. A newer one must not go before an older one: the
//! older could hold an earlier word on a record whose last word was in the newer.

use semel::clock::Timestamp;

use super::batch::Move;
use super::judge::Writer;
use crate::format::frame::{Head, Kind};
use crate::format::header::HEADER_BYTES;
use crate::format::walk::{Step, Walk};
use crate::index::Entry;
use crate::index::entry::Kept;
use crate::log::segment::Segment;

/// How much of an old segment is looked through in one turn: callers wait for it.
const LOOK_BYTES: u32 = 256 << 10;

/// Whether segments can be got rid of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reclaiming {
    Goes,
    /// The disk is so full that not even a note fits.
    HasNoPlace,
    /// The oldest segment is damaged.
    Blocked,
}

impl Writer {
    /// Whether the log is worth making smaller, and can be.
    pub(super) fn has_to_reclaim(&self) -> bool {
        let is_possible = self.reclaiming == Reclaiming::Goes && self.reader.health.check().is_ok();
        is_possible && (self.start.usage.dead() > 0 || self.should_move())
    }

    /// Somebody asked for something: what had no place before may have one now.
    pub(super) fn try_reclaiming_again(&mut self) {
        if self.reclaiming == Reclaiming::HasNoPlace {
            self.reclaiming = Reclaiming::Goes;
        }
    }

    /// Whether the rest of a sweep will be asked for in a moment: to sleep and be woken would take longer.
    pub(crate) fn expects_more(&self) -> bool {
        self.sweep.expects_more()
    }

    /// More than half of the log is dead, beyond what two segments may hold.
    fn should_move(&self) -> bool {
        if self.sweep.is_at_work() {
            return false;
        }
        let usage = &self.start.usage;
        let slack = u64::from(self.start.capacity).saturating_mul(2);
        let is_worth_it = usage.total_bytes() > usage.live_bytes().saturating_mul(2).saturating_add(slack);
        is_worth_it && usage.oldest_sealed().is_some_and(|(_, oldest)| !self.would_crowd(oldest.live_bytes))
    }

    /// On a full disk, what is left is for those that are running.
    fn would_crowd(&self, bytes: u64) -> bool {
        let left = u64::from(self.start.capacity.saturating_sub(self.run.end()));
        self.maintenance.has_no_room() && bytes > left / 4
    }

    /// Takes the next step: drops what is dead, or moves a little out of the oldest segment.
    pub(super) fn reclaim_some(&mut self) {
        self.sweep.begin_turn();
        if !self.has_to_reclaim() {
            return;
        }
        let dead = self.start.usage.dead();
        if dead > 0 {
            self.note_forget(self.start.usage.oldest().saturating_add(dead));
        } else {
            self.move_some();
        }
    }

    /// The log says that older segments are needed no more, before any of them is removed: a removal that a power cut
    /// undoes must not bring back what was forgotten.
    fn note_forget(&mut self, oldest: u32) {
        let moment = self.reader.clock.now();
        let head =
            Head { kind: Kind::Forget, version: u64::from(oldest), kept_until: 0, moment, id: [0; 16] };
        match self.push(&head, &[]) {
            Ok(_) => self.run.forget_before = Some(oldest),
            Err(_) => self.reclaiming = Reclaiming::HasNoPlace,
        }
    }

    /// The note is on disk: the segments may go.
    pub(super) fn forget_before(&mut self, oldest: u32) {
        while self.start.usage.oldest() < oldest {
            let number = self.start.usage.oldest();
            self.reader.segments.remove(number);
            self.maintenance.remove(number);
            self.start.usage.close_oldest();
            self.moved_until = HEADER_BYTES;
            self.reclaiming = Reclaiming::Goes;
        }
    }

    /// Copies what still counts in the next part of the oldest segment.
    fn move_some(&mut self) {
        let Some((number, account)) = self.start.usage.oldest_sealed() else { return };
        let Some(segment) = self.reader.segments.get(number) else { return };
        let end = u32::try_from(account.bytes).unwrap_or(u32::MAX);
        let mut walk = Walk::from(&*segment.file, segment.seed, self.moved_until, end);
        let until = self.moved_until.saturating_add(LOOK_BYTES);
        let now = self.reader.clock.now();
        while walk.at() < until.min(end) {
            let at = walk.at();
            let (from, head, body) = match walk.next() {
                Ok(Step::Frame(frame)) => match Entry::of_frame(number, &frame) {
                    Some(from) => (from, frame.head, frame.body.to_vec()),
                    None => continue,
                },
                Ok(Step::End | Step::Damaged) => return self.leave_alone(&segment, at, "it is damaged"),
                Err(error) => return self.leave_alone(&segment, at, &error.to_string()),
            };
            if !self.move_one(from, &head, &body, now) {
                self.reclaiming = Reclaiming::HasNoPlace;
                return;
            }
        }
        self.moved_until = walk.at();
    }

    /// The oldest segment cannot be read: it stays as it is, and whoever asks for a record in it is told. Everything else
    /// goes on, only the log grows.
    #[cold]
    fn leave_alone(&mut self, segment: &Segment, at: u32, why: &str) {
        self.reclaiming = Reclaiming::Blocked;
        let name = segment.name();
        tracing::error!(name, at, why, "semel: a segment cannot be reclaimed; run `semel file verify`");
    }

    /// Copies one frame if it still counts; `false` if there is no place for it.
    fn move_one(&mut self, from: Entry, head: &Head, body: &[u8], now: Timestamp) -> bool {
        let is_current = self.reader.index.get(&from.id).is_some_and(|known| known.is_at(&from));
        if !is_current {
            return true;
        }
        if from.kept_at(now) == Kept::No {
            if let Some(entry) = self.reader.index.remove(&from.id) {
                self.start.usage.remove(&entry);
            }
            return true;
        }
        match self.push(head, body) {
            Ok(Some(to)) => {
                self.run.moved.push(Move { from, to });
                true
            }
            Ok(None) => true,
            Err(_) => false,
        }
    }
}
