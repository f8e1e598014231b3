//! What is known of one record without reading it.

use semel::clock::Timestamp;
use semel::record::StateKind;

use crate::format::frame::{FOREVER, Frame, Head, IndexKey, Kind};
use crate::format::hint::Line;

const STATE_SHIFT: u32 = 30;
const BYTES_MASK: u32 = (1 << STATE_SHIFT) - 1;
const SECOND_MICROS: u64 = 1_000_000;

/// Where a record is, and what decides whether it counts. Forty bytes: there is one for every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) version: u64,
    pub(crate) id: IndexKey,
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    /// The length of its frame, and in the two highest bits its state.
    size: u32,
    pub(crate) due: Due,
}

/// The end of a record's keep, in seconds, rounded up: four bytes decide all but the last second, and for that the frame
/// is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due(pub(crate) u32);

/// Whether a record counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    No,
    /// Its keep ends in this second; the frame says when.
    Look,
}

impl Due {
    pub(crate) const NEVER: Self = Self(u32::MAX);

    /// The second in which a keep that ends at this microsecond is over for sure.
    pub(crate) fn of(kept_until: u64) -> Self {
        // What is kept beyond the year 2106 is kept for ever.
        Self(u32::try_from(kept_until.div_ceil(SECOND_MICROS)).unwrap_or(u32::MAX))
    }

    /// The last due that is over for sure at `now`.
    pub(crate) fn past(now: Timestamp) -> Self {
        let seconds = now.as_micros().checked_div(SECOND_MICROS).unwrap_or(0);
        Self(u32::try_from(seconds).map_or(u32::MAX - 1, |seconds| seconds.min(u32::MAX - 1)))
    }

    /// The due after this one.
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Entry {
    /// The entry of a record whose frame was pushed or found in a segment; `None` for a note.
    pub(crate) fn new(segment: u32, offset: u32, bytes: u32, head: &Head) -> Option<Self> {
        let Kind::Record(state) = head.kind else { return None };
        Some(Self {
            version: head.version,
            id: head.id,
            segment,
            offset,
            size: (bytes & BYTES_MASK) | code(state) << STATE_SHIFT,
            due: if head.kept_until == FOREVER { Due::NEVER } else { Due::of(head.kept_until) },
        })
    }

    pub(crate) fn of_frame(segment: u32, frame: &Frame<'_>) -> Option<Self> {
        Self::new(segment, frame.offset, frame.bytes, &frame.head)
    }

    pub(crate) fn of_line(segment: u32, line: &Line) -> Self {
        Self {
            version: line.version,
            id: line.id,
            segment,
            offset: line.offset,
            size: line.size,
            due: Due(line.due),
        }
    }

    pub(crate) fn line(&self) -> Line {
        Line { id: self.id, version: self.version, offset: self.offset, size: self.size, due: self.due.0 }
    }

    /// The length of its frame.
    pub(crate) fn bytes(&self) -> u32 {
        self.size & BYTES_MASK
    }

    pub(crate) fn state(&self) -> StateKind {
        match self.size >> STATE_SHIFT {
            0 => StateKind::Running,
            1 => StateKind::Done,
            2 => StateKind::Released,
            _ => StateKind::Held,
        }
    }

    /// Whether both are the same frame.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        (self.segment, self.offset) == (other.segment, other.offset)
    }

    /// Whether it counts at `now`, as far as that can be told without reading.
    pub(crate) fn kept_at(&self, now: Timestamp) -> Kept {
        let past = Due::past(now);
        if self.due <= past {
            Kept::No
        } else if self.due > past.next() || self.due == Due::NEVER {
            Kept::Yes
        } else {
            Kept::Look
        }
    }
}

const fn code(state: StateKind) -> u32 {
    match state {
        StateKind::Running => 0,
        StateKind::Done => 1,
        StateKind::Released => 2,
        StateKind::Held => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kept_until: u64, state: StateKind) -> Entry {
        let moment = Timestamp::from_micros(1);
        let head = Head { kind: Kind::Record(state), version: 1, kept_until, moment, id: [1; 16] };
        Entry::new(3, 64, 200, &head).unwrap()
    }

    #[test]
    fn an_entry_takes_forty_bytes_and_forgets_nothing() {
        assert_eq!(size_of::<Entry>(), 40);
        for state in StateKind::ALL {
            let entry = entry(5_000_000, state);
            assert_eq!((entry.state(), entry.bytes()), (state, 200));
            assert_eq!(Entry::of_line(3, &entry.line()), entry);
        }
    }

    #[test]
    fn only_the_last_second_of_a_keep_has_to_be_looked_up() {
        let kept = |until: u64, now: u64| entry(until, StateKind::Done).kept_at(Timestamp::from_micros(now));
        for until in [4_000_001, 4_500_000, 5_000_000] {
            assert_eq!(kept(until, 3_999_999), Kept::Yes);
            assert_eq!(kept(until, 4_000_000), Kept::Look);
            assert_eq!(kept(until, 4_999_999), Kept::Look);
            assert_eq!(kept(until, 5_000_000), Kept::No);
        }
        assert_eq!(kept(FOREVER, u64::MAX), Kept::Yes);
        assert_eq!(kept(u64::MAX - 1, u64::MAX), Kept::Yes);
    }
}
