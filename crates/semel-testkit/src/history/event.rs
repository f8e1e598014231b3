//! What one caller asked and was told.

use std::fmt;
use std::mem::discriminant;
use std::time::Duration;

use semel::Outcome;
use semel::clock::Timestamp;
use semel::machine::claim::{Ask, Claimed, Recorded};
use semel::machine::settle::{Completed, ReleaseAnswer, Renewed, Resolution, Resolved};
use semel::record::{PermitId, StateWord, Version};

/// What one caller asked of the key, and was told.
#[derive(Clone, Debug)]
pub struct Event {
    /// Who asked. A caller asks one thing at a time.
    pub caller: usize,
    /// When it asked, on the counter that all callers share.
    pub invoked_at: u64,
    /// When it was told; of no meaning if the reply was lost.
    pub returned_at: u64,
    /// What it asked.
    pub asked: Asked,
    /// What it was told; `None` if the reply was lost: it may have taken effect later, or never.
    pub answer: Option<Answer>,
    /// The store's now that it was decided by, if known.
    pub now: Option<Timestamp>,
}

/// What a caller can ask.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the machine documents them")]
pub enum Asked {
    Claim(Box<Ask>),
    RecordOnce(Box<Ask>, Outcome),
    Complete { permit_id: PermitId, outcome: Outcome },
    Release { permit_id: PermitId, reason: Box<str> },
    Renew { permit_id: PermitId, lease: Duration },
    Resolve { permit_id: PermitId, resolution: Resolution },
    Get,
}

/// What a caller was told, and what it saw on the way.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What it was told.
    pub told: Told,
    /// What it saw beside that.
    pub seen: Seen,
}

/// What the machine tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the machine documents them")]
pub enum Told {
    Claimed(Claimed),
    Recorded(Recorded),
    Completed(Completed),
    Released(ReleaseAnswer),
    Renewed(Renewed),
    Resolved(Resolved),
    /// The state of the record; `None` if there was no live one.
    Got(Option<StateWord>),
}

/// What a caller saw beside its answer. What is known is checked; what is not, is not.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The version of the record that was written, or else found.
    pub version: Option<Version>,
    /// When the store stamped the write.
    pub written_at: Option<Timestamp>,
    /// The fence of the run that was granted.
    pub fence: Option<Version>,
    /// The attempt that was granted.
    pub attempt: Option<u32>,
    /// The outcome that was replayed.
    pub outcome: Option<Outcome>,
}

impl Told {
    /// Whether both say the same, however long the caller is told to wait.
    pub(super) fn agrees_with(self, other: Self) -> bool {
        let same_claim = |a: Claimed, b: Claimed| discriminant(&a) == discriminant(&b);
        match (self, other) {
            (Self::Claimed(a), Self::Claimed(b))
            | (Self::Recorded(Recorded::Refused(a)), Self::Recorded(Recorded::Refused(b))) => {
                same_claim(a, b)
            }
            _ => self == other,
        }
    }
}

impl Event {
    /// Until when it must have taken effect, if it must.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.answer.as_ref().map(|_| self.returned_at)
    }

    /// What it saw.
    pub(super) fn seen(&self) -> Option<&Seen> {
        self.answer.as_ref().map(|answer| &answer.seen)
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Claim(_) => "claim",
            Self::RecordOnce(..) => "record_once",
            Self::Complete { .. } => "complete",
            Self::Release { .. } => "release",
            Self::Renew { .. } => "renew",
            Self::Resolve { .. } => "resolve",
            Self::Get => "get",
        })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "caller {} at {} asked {}", self.caller, self.invoked_at, self.asked)?;
        match &self.answer {
            Some(answer) => write!(f, " and was told {:?} at {}", answer.told, self.returned_at)?,
            None => f.write_str(" and never heard")?,
        }
        match self.seen().and_then(|seen| seen.version) {
            Some(version) => write!(f, " (version {})", version.get()),
            None => Ok(()),
        }
    }
}
