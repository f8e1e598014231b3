//! Many asks in one request, and their answers in the same order.

use serde::{Deserialize, Serialize};

use crate::api::problem::Problem;
#[cfg(feature = "openapi")]
use crate::api::problem::Written;

/// How many asks a batch may have.
pub(crate) const BATCH_ITEMS_MAX: usize = 1_000;

/// Many asks. Each is answered by itself: one that is refused does not undo another.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch<T> {
    /// 1 to 1,000 of them.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1_000))]
    pub(crate) items: Vec<T>,
}

impl<T> Batch<T> {
    /// The asks, if they are as many as may be.
    pub(crate) fn items(self) -> Result<Vec<T>, Problem> {
        match self.items.len() {
            1..=BATCH_ITEMS_MAX => Ok(self.items),
            0 => Err(Problem::invalid("items is empty; a batch has 1 to 1000 of them")),
            many => Err(Problem::invalid(format!(
                "items has {many}; a batch has 1 to {BATCH_ITEMS_MAX} of them, so send more batches"
            ))),
        }
    }
}

/// The answers to a batch, in the order of its items.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Answers<T> {
    answers: Vec<OrError<T>>,
}

/// An answer, or why there is none.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
enum OrError<T> {
    Answer(T),
    Error(ItemError),
}

/// An ask of a batch that was not decided.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct ItemError {
    decision: ErrorWord,
    #[cfg_attr(feature = "openapi", schema(value_type = Written))]
    problem: Problem,
}

#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
enum ErrorWord {
    Error,
}

impl<T> Answers<T> {
    pub(crate) fn of(answers: impl Iterator<Item = Result<T, Problem>>) -> Self {
        let answer = |answer| match answer {
            Ok(answer) => OrError::Answer(answer),
            Err(problem) => OrError::Error(ItemError { decision: ErrorWord::Error, problem }),
        };
        Self { answers: answers.map(answer).collect() }
    }
}
