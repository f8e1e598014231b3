//! What operators do to a record that is not theirs, on behalf of a caller: written down before and after.

use semel::record::Record;
use semel::{ErrorKind, OperatorAnswer, Resolution, Result};

use crate::access::{Action, Caller, Entry, Noted};
use crate::monitoring::{DecisionKind, Seen};
use crate::state::AppState;

/// Releases a running or held record, if it is still what was shown: the next claim runs. Whoever calls this has checked
/// that the caller may.
pub async fn release(
    served: &AppState,
    caller: &Caller,
    record: &Record,
    reason: &str,
    version: Option<u64>,
) -> Result<OperatorAnswer> {
    let asked = asked(caller, record, Action::Release, reason);
    served.audit.note(asked).await?;
    let settled = served.semel.release_shown(record, reason, version).await;
    over(served, asked, record, settled).await
}

/// Settles a held record, if it is still what was shown. Whoever calls this has checked that the caller may.
pub async fn resolve(
    served: &AppState,
    caller: &Caller,
    record: &Record,
    resolution: Resolution,
    version: Option<u64>,
) -> Result<OperatorAnswer> {
    let (action, reason) = match &resolution {
        Resolution::Release { reason } => (Action::Release, reason.to_string()),
        Resolution::Done(outcome) => {
            let (kind, bytes) = (outcome.kind().as_str(), outcome.bytes().len());
            (Action::Complete, format!("done with an outcome: {kind}, {bytes} bytes"))
        }
    };
    let asked = asked(caller, record, action, &reason);
    served.audit.note(asked).await?;
    let settled = served.semel.resolve_shown(record, resolution, version).await;
    over(served, asked, record, settled).await
}

fn asked<'a>(caller: &'a Caller, record: &'a Record, action: Action, reason: &'a str) -> Entry<'a> {
    let (key, seen) = (&record.key, record.state.kind());
    Entry { caller: caller.name(), action, key, seen, reason, result: Noted::Asked }
}

async fn over(
    served: &AppState,
    asked: Entry<'_>,
    record: &Record,
    settled: Result<OperatorAnswer>,
) -> Result<OperatorAnswer> {
    let (result, decided) = match &settled {
        Ok(OperatorAnswer::Released) => (Noted::Done, Some(DecisionKind::Released)),
        Ok(OperatorAnswer::Resolved) => (Noted::Done, Some(DecisionKind::Resolved)),
        Err(error) if error.kind() == ErrorKind::Unknown => (Noted::Unknown, None),
        Ok(OperatorAnswer::NotHeld | OperatorAnswer::Changed) | Err(_) => (Noted::Refused, None),
    };
    if let Some(decision) = decided {
        served.live.tell(|| Seen::of(decision, record));
    }
    served.census.look_soon();
    if let Err(error) = served.audit.note(Entry { result, ..asked }).await {
        // What was done is done; that it was asked for is written down.
        tracing::error!(key = %record.key.id().short(), %error, "semel: the end of an action was not written down");
    }
    settled
}
