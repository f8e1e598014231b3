//! What operators do to a record that is not theirs.

use std::sync::Arc;

use axum::extract::{Path, State};
use semel::OperatorAnswer;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ask::{Answer, Json, admit, id};
#[cfg(feature = "openapi")]
use super::openapi::Refused;
use super::problem::Problem;
use super::records::found;
use super::wire::{Outcome, Text, bounded, bytes_of, given};
use crate::access::{Authenticated, Need};
use crate::operator_actions;
use crate::state::AppState;
use semel_ops::operator::{Settlement, SuppliedResponse};
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
    /// The effect landed, and the client gets this response: for keys of HTTP requests. One of the three.
    #[serde(borrow)]
    response: Option<ResponseBody<'a>>,
    /// The effect landed, with this outcome: for all other keys. One of the three.
    outcome: Option<Outcome<'a>>,
    /// The effect did not land: the next claim runs. One of the three.
    release: Option<Because<'a>>,
    /// Only if the record is still at this version, or is still the run with this fence.
    version: Option<u64>,
}

/// A response, exactly as retries get it. At most one of `body`, `text` and `base64`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SuppliedResponse))]
#[serde(deny_unknown_fields)]
pub(super) struct ResponseBody<'a> {
    /// From 200 to 599.
    #[cfg_attr(feature = "openapi", schema(minimum = 200, maximum = 599, example = 201))]
    status: u16,
    /// Names and values, in their order.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(example = json!([["location", "/charges/7"]])))]
    headers: Vec<(String, String)>,
    /// A body of JSON, stored as its text; the content type is `application/json` unless `headers` has one.
    #[serde(borrow, default, deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    body: Option<&'a RawValue>,
    /// A body of text; the content type is `text/plain; charset=utf-8` unless `headers` has one.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    text: Option<Text<'a>>,
    /// A body of any bytes; `headers` must have its content type.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    base64: Option<Text<'a>>,
}

impl ResponseBody<'_> {
    fn supplied(&self) -> Result<SuppliedResponse, Problem> {
        let (bytes, content_type) = match (&self.body, &self.text, &self.base64) {
            (None, None, None) => (Vec::new(), None),
            (Some(json), None, None) => (bytes_of(Some(*json), None)?, Some("application/json")),
            (None, Some(text), None) => (text.as_bytes().to_vec(), Some("text/plain; charset=utf-8")),
            (None, None, Some(base64)) => (bytes_of(None, Some(&**base64))?, None),
            _ => {
                return Err(Problem::invalid(
                    "the response has several bodies; give one of body, text and base64",
                ));
            }
        };
        let (status, headers) = (self.status, self.headers.clone());
        let mut response = SuppliedResponse { status, headers, body: bytes.into() };
        if let Some(content_type) = content_type.filter(|_| !response.has_header("content-type")) {
            response.headers.push(("content-type".to_owned(), content_type.to_owned()));
        }
        Ok(response)
    }
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
    answered(operator_actions::release(&served, &asker.0, &record, &reason, version).await)
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
    let settlement = match (&wanted.response, &wanted.outcome, &wanted.release) {
        (Some(response), None, None) => Settlement::Response(response.supplied()?),
        (None, Some(outcome), None) => Settlement::Outcome(outcome.outcome()?),
        (None, None, Some(release)) => {
            Settlement::Release { reason: bounded("reason", &release.reason)?.into() }
        }
        _ => return Err(Problem::invalid("give one of response, outcome and release")),
    };
    let version = wanted.version;
    let (record, _) = found(&served, &asker.0, id(&digits).map_err(Problem::invalid)?).await?;
    answered(operator_actions::resolve(&served, &asker.0, &record, settlement, version).await)
}

fn answered(answer: semel::Result<OperatorAnswer>) -> Result<Answer, Problem> {
    Answer::of(&OperatorAnswerView::from(answer?))
}
