//! What operators do to a record that is not theirs, on behalf of a caller: the one route for the API and the dashboard.
//!
//! An action that has begun is done and written down to its end, also if the client goes away.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::Record;
use semel::{Error, ErrorKind, OperatorAnswer, RecordId, Result};
use semel_ops::format::record::since;
use semel_ops::lookup::Selection;
use semel_ops::operator::{EventNoted, Many, OffsetMoved, Operator, Settlement, act_on_all};
use semel_stream::{Pipeline, Position, Requeue, RequeueAsk};

use crate::access::Caller;
use crate::monitoring::{DecisionKind, Seen};
use crate::state::AppState;

/// What is done to a record.
#[derive(Clone, Debug)]
pub enum OperatorAction {
    /// Takes a run away, or lets a held record run again.
    Release {
        /// Why, in words for people.
        reason: Box<str>,
    },
    /// Settles a held record.
    Resolve(Settlement),
}

/// Releases a running or held record, if it is still what was shown: the next claim runs. The caller must be allowed to.
pub async fn release(
    served: &Arc<AppState>,
    caller: &Caller,
    record: &Arc<Record>,
    reason: &str,
    version: Option<u64>,
) -> Result<OperatorAnswer> {
    act(served, caller, record, OperatorAction::Release { reason: reason.into() }, version).await
}

/// Settles a held record, if it is still what was shown. The caller must be allowed to.
pub async fn resolve(
    served: &Arc<AppState>,
    caller: &Caller,
    record: &Arc<Record>,
    settlement: impl Into<Settlement>,
    version: Option<u64>,
) -> Result<OperatorAnswer> {
    act(served, caller, record, OperatorAction::Resolve(settlement.into()), version).await
}

async fn act(
    served: &Arc<AppState>,
    caller: &Caller,
    record: &Arc<Record>,
    action: OperatorAction,
    version: Option<u64>,
) -> Result<OperatorAnswer> {
    let (served, name, record) = (Arc::clone(served), caller.name().to_owned(), Arc::clone(record));
    to_the_end(async move { acted(&served, &name, &record, &action, version).await }).await
}

/// Acts on every record of the selection behind `after`, at most `limit`. The selection must be within the caller's scope.
pub async fn act_on_selection(
    served: &Arc<AppState>,
    caller: &Caller,
    selection: Selection,
    action: OperatorAction,
    after: Option<RecordId>,
    limit: usize,
) -> Result<Many> {
    let (served, name) = (Arc::clone(served), caller.name().to_owned());
    to_the_end(async move {
        let act = |record: Arc<Record>| {
            let (served, name, action) = (&served, &name, &action);
            async move { acted(served, name, &record, action, Some(record.version.get())).await }
        };
        act_on_all(&**served.store, selection, after, limit, act, |_| ()).await
    })
    .await
}

/// What a page showed before it asked for an action.
#[derive(Clone, Debug)]
pub struct ShownRecords {
    /// Which records are meant.
    pub selection: Selection,
    /// Only those with these ids; `None` for all that match.
    pub ids: Option<Vec<RecordId>>,
    /// The store's now when they were shown.
    pub at: Timestamp,
}

/// Acts on records that a page showed, at most `limit`. One that entered its state later was not among those that an
/// operator decided on: it is counted as changed, and nothing is done to it. So an action that is sent twice is done once.
/// The selection must be within the caller's scope.
pub async fn act_on_shown(
    served: &Arc<AppState>,
    caller: &Caller,
    shown: ShownRecords,
    action: OperatorAction,
    limit: usize,
) -> Result<Many> {
    let (served, name) = (Arc::clone(served), caller.name().to_owned());
    to_the_end(async move {
        let act = |record: Arc<Record>| {
            let (served, name, action) = (&served, &name, &action);
            async move {
                if since(&record) > shown.at {
                    return Ok(OperatorAnswer::Changed);
                }
                acted(served, name, &record, action, Some(record.version.get())).await
            }
        };
        let Some(ids) = shown.ids else {
            return act_on_all(&**served.store, shown.selection, None, limit, act, |_| ()).await;
        };
        let mut many = Many::default();
        for (record, _) in shown.selection.load(&**served.store, &ids).await?.into_iter().take(limit) {
            many.matched = many.matched.saturating_add(1);
            many.count(act(record).await);
        }
        Ok(many)
    })
    .await
}

/// Notes an event as processed. The caller must be allowed to, and reach the pipeline.
pub async fn record_event(
    served: &Arc<AppState>,
    caller: &Caller,
    pipeline: Pipeline,
    event: String,
) -> Result<EventNoted> {
    let (served, name) = (Arc::clone(served), caller.name().to_owned());
    to_the_end(async move {
        let operator = Operator { semel: &served.semel, audit: &served.audit, name: &name };
        let noted = operator.record_event(&pipeline, &event).await;
        served.census.look_soon();
        noted
    })
    .await
}

/// Moves the offset of a stream, if it is still in this epoch. The caller must be allowed to, and reach the pipeline.
pub async fn move_offset(
    served: &Arc<AppState>,
    caller: &Caller,
    pipeline: Pipeline,
    stream: String,
    to: Option<Position>,
    epoch: Option<u64>,
) -> Result<OffsetMoved> {
    let (served, name) = (Arc::clone(served), caller.name().to_owned());
    to_the_end(async move {
        let operator = Operator { semel: &served.semel, audit: &served.audit, name: &name };
        let moved = operator.move_offset(&pipeline, &stream, to, epoch).await;
        served.census.look_soon();
        moved
    })
    .await
}

/// Sends a dead letter back. The caller must be allowed to.
pub async fn requeue(
    served: &Arc<AppState>,
    caller: &Caller,
    pipeline: Pipeline,
    ask: RequeueAsk,
    reason: String,
) -> Result<Requeue> {
    let (served, name) = (Arc::clone(served), caller.name().to_owned());
    to_the_end(async move {
        let operator = Operator { semel: &served.semel, audit: &served.audit, name: &name };
        let answers = operator.requeue(&pipeline, &[ask], &reason).await?;
        served.census.look_soon();
        Ok(answers.first().copied().unwrap_or(Requeue::Unknown))
    })
    .await
}

async fn acted(
    served: &AppState,
    name: &str,
    record: &Record,
    action: &OperatorAction,
    version: Option<u64>,
) -> Result<OperatorAnswer> {
    let operator = Operator { semel: &served.semel, audit: &served.audit, name };
    let answer = match action {
        OperatorAction::Release { reason } => operator.release(record, reason, version).await,
        OperatorAction::Resolve(settlement) => operator.resolve(record, settlement, version).await,
    };
    let decided = match &answer {
        Ok(OperatorAnswer::Released) => Some(DecisionKind::Released),
        Ok(OperatorAnswer::Resolved) => Some(DecisionKind::Resolved),
        Ok(OperatorAnswer::NotHeld | OperatorAnswer::Changed) | Err(_) => None,
    };
    if let Some(decision) = decided {
        served.live.tell(|| Seen::of(decision, record));
    }
    served.census.look_soon();
    answer
}

async fn to_the_end<T: Send + 'static>(
    action: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    match tokio::spawn(action).await {
        Ok(answer) => answer,
        Err(error) => {
            let message = "the action ended early, and it is not known whether it took; read the record, then try again";
            Err(Error::new(ErrorKind::Unknown, message).caused_by(error))
        }
    }
}
