//! What became of an operator's action.

use semel::OperatorAnswer;
use serde::{Deserialize, Serialize};

/// What became of an operator's action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = OperatorAnswer))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum OperatorAnswerView {
    /// The next claim runs.
    Released,
    /// The record is settled as was said.
    Resolved,
    /// There is nothing to settle: it is done, released, or (to resolve) still running. Nothing was changed.
    NotHeld,
    /// The record is no longer what was shown. Nothing was changed: look again.
    Changed,
}

impl From<OperatorAnswer> for OperatorAnswerView {
    fn from(answer: OperatorAnswer) -> Self {
        match answer {
            OperatorAnswer::Released => Self::Released,
            OperatorAnswer::Resolved => Self::Resolved,
            OperatorAnswer::NotHeld => Self::NotHeld,
            OperatorAnswer::Changed => Self::Changed,
        }
    }
}

impl From<OperatorAnswerView> for OperatorAnswer {
    fn from(view: OperatorAnswerView) -> Self {
        match view {
            OperatorAnswerView::Released => Self::Released,
            OperatorAnswerView::Resolved => Self::Resolved,
            OperatorAnswerView::NotHeld => Self::NotHeld,
            OperatorAnswerView::Changed => Self::Changed,
        }
    }
}

impl OperatorAnswerView {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Released, Self::Resolved, Self::NotHeld, Self::Changed];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Resolved => "resolved",
            Self::NotHeld => "not_held",
            Self::Changed => "changed",
        }
    }
}
