//! What was decided about a request, for logs and metrics.

use semel::RecordId;

use crate::problem::Code;

/// What was decided about a request: an extension of its response. A response without one passed untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// What was decided.
    pub decision: DecisionKind,
    /// Why, if semel answered by itself.
    pub code: Option<Code>,
    /// The record's id, if the request got that far; `short()` is for logs.
    pub key: Option<RecordId>,
}

/// What was decided about a request, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecisionKind {
    /// The service was called.
    Run,
    /// There is a stored response, or the fact that it was not kept.
    Replay,
    /// The first request with this key still runs.
    Busy,
    /// The key was used for another request.
    Mismatch,
    /// Nothing runs until a person or a probe decides.
    Held,
    /// The service was called although the store did not answer.
    Unprotected,
    /// Refused before the store decided, or because it did not.
    Refused,
}

impl DecisionKind {
    /// The word for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Replay => "replay",
            Self::Busy => "busy",
            Self::Mismatch => "mismatch",
            Self::Held => "held",
            Self::Unprotected => "unprotected",
            Self::Refused => "refused",
        }
    }
}

impl Decided {
    pub(crate) fn refused(code: Code) -> Self {
        Self { decision: DecisionKind::Refused, code: Some(code), key: None }
    }
}
