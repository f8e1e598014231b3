//! When offsets are committed.

use std::time::Duration;

/// When offsets are committed. Whenever that is, only up to where everything has a receipt; what is read again after a
/// crash, because its offset was not yet committed, is not processed again.
///
/// Events of a queue that many share are acknowledged as soon as they have their receipts, whatever is chosen here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// After each event; those that end at the same moment share a commit.
    EachEvent,
    /// After so many events of a stream.
    Every(u64),
    /// After so much time, if anything happened.
    Interval(Duration),
    /// Only when [`Stopper::checkpoint`](super::Stopper::checkpoint) says so, also at the end.
    Explicit,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self::Interval(Duration::from_secs(1))
    }
}

impl Checkpoint {
    /// Whether so many events since the last commit are reason enough for the next.
    pub(super) fn is_due_after(self, events: u64) -> bool {
        match self {
            Self::EachEvent => events > 0,
            Self::Every(most) => events > 0 && events >= most,
            Self::Interval(_) | Self::Explicit => false,
        }
    }

    /// How often everything is committed.
    pub(super) fn interval(self) -> Option<Duration> {
        match self {
            // A span of nothing would commit all the time and do nothing else.
            Self::Interval(every) => Some(every.max(Duration::from_millis(1))),
            Self::EachEvent | Self::Every(_) | Self::Explicit => None,
        }
    }
}
