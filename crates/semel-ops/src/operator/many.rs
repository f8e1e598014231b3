//! One action on every record of a selection, with a bound on how many are acted on at once.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use semel::record::Record;
use semel::store::Store;
use semel::{ErrorKind, OperatorAnswer, RecordId, Result};
use serde::Serialize;

use crate::lookup::Selection;

/// How many records are acted on at once.
const IN_FLIGHT_MAX: usize = 64;

/// What became of an action on many records, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ManyAnswer))]
pub struct Many {
    /// How many records were acted on, or would be.
    pub matched: u64,
    /// Settled with a response or an outcome.
    pub resolved: u64,
    /// The next claim of these runs.
    pub released: u64,
    /// No longer what was read a moment before. Nothing was changed.
    pub changed: u64,
    /// There was nothing to settle. Nothing was changed.
    pub not_held: u64,
    /// Refused, or the store refused. Nothing was changed.
    pub failed: u64,
    /// The store did not answer: the action may have been done.
    pub unknown: u64,
    /// The first error, if there was one.
    pub first_error: Option<String>,
    /// Where to go on, because the limit was reached; `null` at the end.
    pub next: Option<String>,
}

impl Many {
    /// Whether every record was settled as was asked.
    pub fn is_whole(&self) -> bool {
        self.resolved.saturating_add(self.released) == self.matched
    }

    /// Adds what became of others.
    pub fn add(&mut self, other: Self) {
        for (own, more) in [
            (&mut self.matched, other.matched),
            (&mut self.resolved, other.resolved),
            (&mut self.released, other.released),
            (&mut self.changed, other.changed),
            (&mut self.not_held, other.not_held),
            (&mut self.failed, other.failed),
            (&mut self.unknown, other.unknown),
        ] {
            *own = own.saturating_add(more);
        }
        self.first_error = self.first_error.take().or(other.first_error);
        self.next = other.next;
    }

    /// Counts what became of one record.
    pub fn count(&mut self, answer: Result<OperatorAnswer>) {
        let place = match &answer {
            Ok(OperatorAnswer::Resolved) => &mut self.resolved,
            Ok(OperatorAnswer::Released) => &mut self.released,
            Ok(OperatorAnswer::Changed) => &mut self.changed,
            Ok(OperatorAnswer::NotHeld) => &mut self.not_held,
            Err(error) if error.kind() == ErrorKind::Unknown => &mut self.unknown,
            Err(_) => &mut self.failed,
        };
        *place = place.saturating_add(1);
        if let Err(error) = answer {
            self.first_error.get_or_insert_with(|| error.to_string());
        }
    }
}

/// Acts on every record of the selection behind `after`, at most `limit`. `progress` is called after each with the numbers so
/// far. An error of the walk itself is counted and ends it: what was done before it is in the numbers.
pub async fn act_on_all<F: Future<Output = Result<OperatorAnswer>>>(
    store: &dyn Store,
    selection: Selection,
    after: Option<RecordId>,
    limit: usize,
    act: impl Fn(Arc<Record>) -> F,
    mut progress: impl FnMut(&Many),
) -> Result<Many> {
    let mut walk = selection.walk(store, after).await?;
    let (mut many, mut left) = (Many::default(), limit);
    let mut going = FuturesUnordered::new();
    while left > 0 {
        let page = match walk.next_of(left).await {
            Ok(Some(page)) => page,
            Ok(None) => break,
            Err(error) => {
                many.first_error.get_or_insert_with(|| error.to_string());
                many.failed = many.failed.saturating_add(1);
                break;
            }
        };
        left = left.saturating_sub(page.records.len());
        for record in page.records {
            if going.len() >= IN_FLIGHT_MAX
                && let Some(answer) = going.next().await
            {
                many.count(answer);
                progress(&many);
            }
            many.matched = many.matched.saturating_add(1);
            going.push(act(record));
        }
        // Whatever the walk waits for next, what was begun is finished first.
        while let Some(answer) = going.next().await {
            many.count(answer);
            progress(&many);
        }
    }
    many.next = walk.after().filter(|_| left == 0).map(|id| id.to_string());
    Ok(many)
}
