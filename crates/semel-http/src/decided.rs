//! What was decided about a request, for whoever writes logs and counts.

use semel::RecordId;

use crate::problem::Code;

/// What was decided about a request: an extension of its response. A response without one passed untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// `run`, `replay`, `busy`, `mismatch`, `held`, `unprotected` or `refused`.
    pub decision: &'static str,
    /// Why, if semel answered by itself.
    pub code: Option<Code>,
    /// Whose record it is about, if it got that far; `short()` is for logs.
    pub key: Option<RecordId>,
}

impl Decided {
    pub(crate) fn refused(code: Code) -> Self {
        Self { decision: "refused", code: Some(code), key: None }
    }
}
