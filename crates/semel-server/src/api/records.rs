//! One record, by its key or by its id.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use semel::clock::Timestamp;
use semel::record::{Record, State as Standing};
use semel::{Key, RecordId};
use serde::Serialize;
use tokio::time::Instant;

use super::admit::admit;
use super::body::Answer;
#[cfg(feature = "openapi")]
use super::openapi::Looked;
use super::problem::Problem;
use super::query::{Query, id};
use super::wire::OutcomeAs;
use crate::access::{Authenticated, Caller, Need};
use crate::state::AppState;
use semel_ops::record_json::{Content, RecordView};

/// One record.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct RecordAnswer<'a> {
    record: RecordView<'a>,
}

/// The key of a record, and how to show it.
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[expect(dead_code, reason = "describes what is read name by name")]
pub(super) struct RecordQuery {
    /// A part of the tenant's path; once for each, outermost first.
    #[cfg_attr(feature = "openapi", param(required = false))]
    scope: Vec<String>,
    /// What kind of work it is.
    #[cfg_attr(feature = "openapi", param(example = "charge"))]
    operation: String,
    /// Which one of its kind.
    #[cfg_attr(feature = "openapi", param(example = "order-1042"))]
    name: String,
    /// How long to wait for a running record: answers as soon as it is settled or its lease has lapsed. `30s`, `500ms`; at most 60s.
    wait: Option<String>,
    /// How the bytes of an outcome are shown: as JSON where they are JSON text, unless this says `base64`.
    outcome_as: Option<OutcomeAs>,
}

/// How to show a record.
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[expect(dead_code, reason = "describes what is read name by name")]
pub(super) struct ShowQuery {
    /// How long to wait for a running record: answers as soon as it is settled or its lease has lapsed. `30s`, `500ms`; at most 60s.
    wait: Option<String>,
    /// How the bytes of an outcome are shown: as JSON where they are JSON text, unless this says `base64`.
    outcome_as: Option<OutcomeAs>,
}

/// See the record of a key, or wait until it is settled
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/record", tag = "look", operation_id = "record", params(RecordQuery),
    responses((status = 200, description = "The record.", body = RecordAnswer), Looked)))]
pub(super) async fn by_key(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    mut query: Query,
) -> Result<Answer, Problem> {
    admit(&asker, Need::See, 1)?;
    let (scope, operation, name) = (query.all("scope"), query.needed("operation")?, query.needed("name")?);
    let (wait, content) = (query.wait()?, query.content(&asker.0)?);
    query.end()?;
    let key = Key::scoped(&scope, &operation, &name)?;
    if !asker.0.reaches(&key) {
        return Err(Problem::forbidden("the key is outside this token's scope"));
    }
    shown(&served, &asker.0, key.id(), wait, content).await
}

/// See a record, or wait until it is settled
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/records/{id}", tag = "look", operation_id = "record_by_id",
    params(("id" = String, Path, description = "What identifies the record: 64 hex digits."), ShowQuery),
    responses((status = 200, description = "The record.", body = RecordAnswer), Looked)))]
pub(super) async fn by_id(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    Path(digits): Path<String>,
    mut query: Query,
) -> Result<Answer, Problem> {
    admit(&asker, Need::See, 1)?;
    let (wait, content) = (query.wait()?, query.content(&asker.0)?);
    query.end()?;
    let id = id(&digits).map_err(Problem::invalid)?;
    shown(&served, &asker.0, id, wait, content).await
}

async fn shown(
    served: &AppState,
    caller: &Caller,
    id: RecordId,
    wait: Duration,
    content: Content,
) -> Result<Answer, Problem> {
    let (mut record, mut now) = found(served, caller, id).await?;
    if !wait.is_zero() && runs(&record, now) {
        let started_at = Instant::now();
        record = settled(served, id, wait)
            .await?
            .filter(|record| caller.reaches(&record.key))
            .ok_or_else(nothing)?;
        now = now.plus(started_at.elapsed()).max(record.changed_at);
    }
    Answer::of(&RecordAnswer { record: RecordView::of(&record, now, content) })
}

/// The record with this id, if there is one that this caller may know of, and the store's now.
pub(super) async fn found(
    served: &AppState,
    caller: &Caller,
    id: RecordId,
) -> Result<(Record, Timestamp), Problem> {
    let answer = served.store.store().load(vec![id]).await?;
    let record = answer.value.into_iter().next().flatten();
    let is_there = |record: &Record| record.is_live(answer.now) && caller.reaches(&record.key);
    record.filter(is_there).map(|record| (record, answer.now)).ok_or_else(nothing)
}

/// Waits for the end of a run. With too many waiting, or while the server stops, the record is shown as it is.
async fn settled(served: &AppState, id: RecordId, wait: Duration) -> Result<Option<Record>, Problem> {
    let semel = &served.semel;
    let Some(mut waiting) = served.waits.enter() else {
        return Ok(semel.get_settled(id, Duration::ZERO).await?);
    };
    tokio::select! {
        biased;
        settled = semel.get_settled(id, wait) => Ok(settled?),
        () = waiting.cut_short() => Ok(semel.get_settled(id, Duration::ZERO).await?),
    }
}

fn runs(record: &Record, now: Timestamp) -> bool {
    matches!(&record.state, Standing::Running(running) if running.lease_is_good(now))
}

fn nothing() -> Problem {
    Problem::not_found("there is no such record: nobody has claimed it, or its retention is over")
}
