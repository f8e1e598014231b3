//! What operators do to somebody else's record.

use std::sync::Arc;

use axum::extract::{Path, State};
use semel::{OperatorAnswer, Resolution};
use serde::Deserialize;

use super::ask::{Answer, Json, admit, id};
#[cfg(feature = "openapi")]
use super::openapi::Refused;
use super::problem::{Code, Problem};
use super::records::found;
use super::wire::{Outcome, Text, bounded};
use crate::access::{Authenticated, Need};
use crate::operator_actions;
use crate::state::AppState;
use semel_ops::record_json::OperatorAnswerView;

/// Releases a running or held record.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseRecord<'a> {
    /// Why, in words for people.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 4_096, example = "the worker's machine is gone"))]
    reason: Text<'a>,
    /// Only if the record is still at this version, or is still the run with this fence.
    version: Option<u64>,
}

/// Settles a held record: with an outcome, or with a release.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ResolveRecord<'a> {
    /// The effect landed, with this outcome: retries get it. This or `release`.
    #[serde(borrow)]
    outcome: Option<Outcome<'a>>,
    /// The effect did not land: the next claim runs. This or `outcome`.
    release: Option<Because<'a>>,
    /// Only if the record is still at this version, or is still the run with this fence.
    version: Option<u64>,
}

/// Why.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Because<'a> {
    /// In words for people.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 4_096, example = "the provider knows nothing of it"))]
    reason: Text<'a>,
}

/// Take a run away from whoever has it, or let a held record run again
///
/// This stops nobody: a run that still goes on is told that it lost its permit when it asks next.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/records/{id}/release", tag = "operate", operation_id = "release_record",
    params(("id" = String, Path, description = "What identifies the record: 64 hex digits.")),
    request_body = ReleaseRecord,
    responses((status = 200, description = "What became of it.", body = OperatorAnswerView, example = json!({"decision": "released"})), Refused)))]
pub(super) async fn release(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    Path(digits): Path<String>,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Act, 1)?;
    let wanted = body.read::<ReleaseRecord<'_>>()?;
    let (reason, version) = (bounded("reason", &wanted.reason)?.to_owned(), wanted.version);
    let (record, _) = found(&served, &asker.0, id(&digits).map_err(Problem::invalid)?).await?;
    to_the_end(async move { operator_actions::release(&served, &asker.0, &record, &reason, version).await })
        .await
}

/// Settle a held record: done with an outcome, or released
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/records/{id}/resolve", tag = "operate", operation_id = "resolve_record",
    params(("id" = String, Path, description = "What identifies the record: 64 hex digits.")),
    request_body = ResolveRecord,
    responses((status = 200, description = "What became of it.", body = OperatorAnswerView, example = json!({"decision": "resolved"})), Refused)))]
pub(super) async fn resolve(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    Path(digits): Path<String>,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Act, 1)?;
    let wanted = body.read::<ResolveRecord<'_>>()?;
    let resolution = match (&wanted.outcome, &wanted.release) {
        (Some(outcome), None) => Resolution::Done(outcome.outcome()?),
        (None, Some(release)) => Resolution::Release { reason: bounded("reason", &release.reason)?.into() },
        (None, None) | (Some(_), Some(_)) => {
            return Err(Problem::invalid("give either an outcome or a release, and not both"));
        }
    };
    let version = wanted.version;
    let (record, _) = found(&served, &asker.0, id(&digits).map_err(Problem::invalid)?).await?;
    to_the_end(
        async move { operator_actions::resolve(&served, &asker.0, &record, resolution, version).await },
    )
    .await
}

/// An action that has begun is done and written down to its end, also if whoever asked for it goes away.
async fn to_the_end(
    action: impl Future<Output = semel::Result<OperatorAnswer>> + Send + 'static,
) -> Result<Answer, Problem> {
    match tokio::spawn(action).await {
        Ok(answer) => Answer::of(&OperatorAnswerView::from(answer?)),
        Err(_) => Err(Problem::new(
            Code::Unknown,
            "nobody knows whether it took; look at the record, then ask again",
        )),
    }
}
