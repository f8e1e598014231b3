//! What is known of one record without reading it.

use semel::clock::Timestamp;
use semel::record::StateKind;

use crate::format::frame::{FOREVER, Frame, Head, IndexKey, Kind, padded};

const SECOND_MICROS: u64 = 1_000_000;

/// Where a record is, and what decides whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) version: u64,
    pub(crate) id: IndexKey,
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(super) bytes: u32,
    pub(super) state: StateKind,
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
            bytes: padded(bytes),
            state,
            due: if head.kept_until == FOREVER { Due::NEVER } else { Due::of(head.kept_until) },
        })
    }

    pub(crate) fn of_frame(segment: u32, frame: &Frame<'_>) -> Option<Self> {
        Self::new(segment, frame.offset, frame.bytes, &frame.head)
    }

    /// The length of its frame with the padding behind it. The exact length is in the frame.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Whether it runs or is held: few records are, and people look for them.
    pub(crate) fn is_unsettled(&self) -> bool {
        matches!(self.state, StateKind::Running | StateKind::Held)
    }

    /// Whether a list of records in these states may have to show it; no states are all of them. A run whose lease lapsed
    /// under `hold` is held. What runs under `hold` is kept for ever, so among the other runs there is none.
    pub(crate) fn may_be(&self, states: &[StateKind]) -> bool {
        let wants = |state: StateKind| states.contains(&state);
        let may_have_lapsed = self.state == StateKind::Running && self.due == Due::NEVER;
        states.is_empty() || wants(self.state) || (may_have_lapsed && wants(StateKind::Held))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kept_until: u64, state: StateKind) -> Entry {
        let moment = Timestamp::from_micros(1);
        let head = Head { kind: Kind::Record(state), version: 1, kept_until, moment, id: [1; 16] };
        Entry::new(3, 64, 201, &head).unwrap()
    }

    #[test]
    fn an_entry_knows_the_state_and_the_padded_length_of_its_frame() {
        for state in StateKind::ALL {
            let entry = entry(5_000_000, state);
            assert_eq!((entry.state, entry.bytes(), entry.due), (state, 208, Due(5)));
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

    #[test]
    fn a_list_of_held_records_asks_for_runs_that_may_have_lapsed_under_hold_and_for_no_others() {
        let [held, running] = [StateKind::Held, StateKind::Running];
        assert!(entry(FOREVER, running).may_be(&[held]));
        assert!(!entry(5_000_000, running).may_be(&[held]));
        assert!(entry(5_000_000, running).may_be(&[running]) && entry(5_000_000, running).may_be(&[]));
        assert!(!entry(FOREVER, StateKind::Done).may_be(&[held, running]));
    }
}
