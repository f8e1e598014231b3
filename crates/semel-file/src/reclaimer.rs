//! Gets rid of segments in which little still counts: always the oldest first. A newer one must not go before an older one:
//! the older could hold an earlier version of a record whose last version was in the newer.

use crate::format::frame::Head;
use crate::format::header::HEADER_BYTES;
use crate::format::name;
use crate::format::walk::{Step, Walk};
use crate::index::Entry;
use crate::index::entry::Kept;
use crate::log::appender::Appender;
use crate::reader::Reader;
use crate::sweeper::Sweeper;

/// How much of an old segment is read in one turn: callers wait for it.
const READ_BYTES: u32 = 256 << 10;

/// Decides what to move out of the oldest segment, and when segments can go.
pub(crate) struct Reclaimer {
    /// Up to where the oldest segment has been moved.
    moved_until: u32,
    state: Reclaiming,
}

/// Whether segments can be got rid of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reclaiming {
    Possible,
    /// The disk is so full that not even a note fits.
    NoSpace,
    /// The oldest segment is damaged.
    Damaged,
}

/// What to do next.
pub(crate) enum Reclaim {
    /// Write down that segments before this one are needed no more.
    ForgetBefore(u32),
    /// Append these frames anew; then the oldest segment has been moved up to `until`.
    Move { frames: Vec<LiveFrame>, until: u32 },
}

/// A frame of an old segment that still counts.
pub(crate) struct LiveFrame {
    pub(crate) from: Entry,
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Reclaimer {
    pub(crate) fn new() -> Self {
        Self { moved_until: HEADER_BYTES, state: Reclaiming::Possible }
    }

    /// Whether the log is worth making smaller, and can be.
    pub(crate) fn has_work(&self, log: &Appender, sweep: &Sweeper) -> bool {
        self.state == Reclaiming::Possible && (log.usage().dead() > 0 || should_move(log, sweep))
    }

    /// A caller asked for something: what had no space before may have some now.
    pub(crate) fn try_again(&mut self) {
        if self.state == Reclaiming::NoSpace {
            self.state = Reclaiming::Possible;
        }
    }

    /// The next step of this turn: a bounded part of the work.
    pub(crate) fn next(&mut self, log: &mut Appender, sweep: &Sweeper, reader: &Reader) -> Option<Reclaim> {
        if !self.has_work(log, sweep) {
            return None;
        }
        let dead = log.usage().dead();
        if dead > 0 {
            return Some(Reclaim::ForgetBefore(log.usage().oldest().saturating_add(dead)));
        }
        self.live_frames(log, reader)
    }

    /// What [`next`](Self::next) said was done.
    pub(crate) fn moved(&mut self, until: u32) {
        self.moved_until = until;
    }

    /// There was no space for it.
    pub(crate) fn had_no_space(&mut self) {
        self.state = Reclaiming::NoSpace;
    }

    /// The oldest segments are gone.
    pub(crate) fn removed(&mut self) {
        self.moved_until = HEADER_BYTES;
        self.state = Reclaiming::Possible;
    }

    /// The frames that still count in the next part of the oldest segment. Records past their keep are removed instead.
    fn live_frames(&mut self, log: &mut Appender, reader: &Reader) -> Option<Reclaim> {
        let (number, usage) = log.usage().oldest_sealed()?;
        let Some(segment) = reader.segments.get(number) else {
            return self.leave_alone(&name::segment(number), 0, "it is missing");
        };
        let end = u32::try_from(usage.bytes).unwrap_or(u32::MAX);
        let until = self.moved_until.saturating_add(READ_BYTES).min(end);
        let mut walk = Walk::from(&*segment.file, segment.seed, self.moved_until, end);
        let (mut frames, now) = (Vec::new(), reader.clock.now());
        while walk.at() < until {
            let at = walk.at();
            let frame = match walk.next() {
                Ok(Step::Frame(frame)) => frame,
                Ok(Step::End | Step::Damaged) => {
                    return self.leave_alone(&segment.name(), at, "it is damaged");
                }
                Err(error) => return self.leave_alone(&segment.name(), at, &error.to_string()),
            };
            let Some(from) = Entry::of_frame(number, &frame).filter(|from| reader.index.is_current(from))
            else {
                continue;
            };
            if from.kept_at(now) == Kept::No {
                reader.index.remove(&from.id);
                log.usage_mut().remove(&from);
            } else {
                frames.push(LiveFrame { from, head: frame.head, body: frame.body.to_vec() });
            }
        }
        Some(Reclaim::Move { frames, until: walk.at() })
    }

    /// The oldest segment cannot be read: it stays as it is, and a caller that asks for a record in it gets an error.
    /// Everything else goes on, only the log grows.
    #[cold]
    fn leave_alone(&mut self, segment: &str, at: u32, why: &str) -> Option<Reclaim> {
        self.state = Reclaiming::Damaged;
        tracing::error!(segment, at, why, "semel: a segment cannot be reclaimed; run `semel file verify`");
        None
    }
}

/// More than half of the log is dead, beyond what two segments may hold. While a sweep is at work, nothing is moved that it
/// may remove in a moment.
fn should_move(log: &Appender, sweep: &Sweeper) -> bool {
    let usage = log.usage();
    let slack = u64::from(log.capacity()).saturating_mul(2);
    let is_worth_it = usage.total_bytes() > usage.live_bytes().saturating_mul(2).saturating_add(slack);
    is_worth_it
        && !sweep.is_at_work()
        && usage.oldest_sealed().is_some_and(|(_, oldest)| !would_crowd(log, oldest.live_bytes))
}

/// On a full disk, what is left is for those that are running.
fn would_crowd(log: &Appender, bytes: u64) -> bool {
    log.has_no_room() && bytes > u64::from(log.bytes_left()) / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_had_no_space_is_tried_again_and_a_damaged_segment_is_not() {
        let mut reclaimer = Reclaimer::new();
        reclaimer.moved(4_096);
        reclaimer.had_no_space();
        assert_eq!(reclaimer.state, Reclaiming::NoSpace);
        reclaimer.try_again();
        assert_eq!((reclaimer.state, reclaimer.moved_until), (Reclaiming::Possible, 4_096));
        reclaimer.state = Reclaiming::Damaged;
        reclaimer.try_again();
        assert_eq!(reclaimer.state, Reclaiming::Damaged);
        // Once it is gone, the next segment is moved from its first frame on.
        reclaimer.removed();
        assert_eq!((reclaimer.state, reclaimer.moved_until), (Reclaiming::Possible, HEADER_BYTES));
    }
}
