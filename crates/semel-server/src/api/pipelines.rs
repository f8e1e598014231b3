//! Offsets and receipts of pipelines, and dead letters that are sent back.

use std::sync::Arc;

use axum::extract::{Path, State};
use semel_stream::{Pipeline, ReceiptFilter, ReceiptsAfter, RequeueAsk};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ask::{Answer, Json, Look, Query, admit, id, within};
#[cfg(feature = "openapi")]
use super::openapi::{Looked, Refused};
use super::problem::Problem;
use super::records::{Counts, found, look, written};
use super::wire::{Text, bounded};
use crate::access::{Authenticated, Caller, Need};
use crate::operator_actions;
use crate::state::AppState;
use semel_ops::record_json::dead_letter::RequeueView;
#[cfg(feature = "openapi")]
use semel_ops::record_json::offset::OffsetView;
use semel_ops::record_json::offset::OffsetsWanted;
use semel_ops::record_json::receipt::ReceiptView;
use semel_ops::record_json::{Content, Id};

/// How far pipelines have read.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Offsets {
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<OffsetView>))]
    offsets: Vec<Box<RawValue>>,
    /// What to give as `after` for the next page; `null` after the last. A page may be short and not the last.
    next: Option<Id>,
}

/// What became of the events of a pipeline.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Receipts {
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<ReceiptView>))]
    receipts: Vec<Box<RawValue>>,
    /// What to give as `after` for the next page; `null` after the last. A page may be short and not the last.
    next: Option<Id>,
}

/// Which offsets are wanted.
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[expect(dead_code, reason = "describes what is read name by name")]
pub(super) struct OffsetsQuery {
    /// A part of the tenant's path; once for each, outermost first. The token's scope if there is none.
    #[cfg_attr(feature = "openapi", param(required = false))]
    scope: Vec<String>,
    /// The name of one pipeline.
    pipeline: Option<String>,
    /// How many at most; 100 if not given.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    limit: Option<u32>,
    /// Behind this record: `next` of the page before.
    #[cfg_attr(feature = "openapi", param(value_type = Option<Id>))]
    after: Option<String>,
}

/// Which receipts are wanted.
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[expect(dead_code, reason = "describes what is read name by name")]
pub(super) struct ReceiptsQuery {
    /// A part of the tenant's path; once for each, outermost first. The token's scope if there is none.
    #[cfg_attr(feature = "openapi", param(required = false))]
    scope: Vec<String>,
    /// The name of the pipeline.
    #[cfg_attr(feature = "openapi", param(example = "billing"))]
    pipeline: String,
    /// How many records are looked at; 100 if not given.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    limit: Option<u32>,
    /// Behind this record: `next` of the page before.
    #[cfg_attr(feature = "openapi", param(value_type = Option<Id>))]
    after: Option<String>,
}

/// See how far pipelines have read
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/offsets", tag = "look", operation_id = "offsets", params(OffsetsQuery),
    responses((status = 200, description = "A page.", body = Offsets), Looked)))]
pub(super) async fn offsets(asked: Look) -> Result<Answer, Problem> {
    let Look { served, asker, mut query } = asked;
    admit(&asker, Need::List, 1)?;
    let pipeline: Option<Box<str>> = query.one("pipeline")?.map(|name| name.trim().into());
    let scope = tenant(&mut query, &asker.0);
    let page = query.page()?;
    query.end()?;
    let wanted = match pipeline {
        Some(pipeline) => {
            OffsetsWanted { scope: of_pipeline(&asker.0, scope, &pipeline)?, pipeline: Some(pipeline) }
        }
        None => OffsetsWanted { scope: within(&asker.0, scope)?, pipeline: None },
    };
    let mut offsets = Vec::new();
    let next = look(&**served.store, wanted.filter(), &page, |record, _| {
        let Some(offset) = wanted.read(record) else { return Ok(Counts::No) };
        offsets.push(written(&offset)?);
        Ok(Counts::Yes)
    })
    .await?;
    Answer::of(&Offsets { offsets, next: next.map(Id) })
}

/// See what became of the events of a pipeline
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/receipts", tag = "look", operation_id = "receipts", params(ReceiptsQuery),
    responses((status = 200, description = "A page.", body = Receipts), Looked)))]
pub(super) async fn receipts(asked: Look) -> Result<Answer, Problem> {
    let Look { served, asker, mut query } = asked;
    admit(&asker, Need::List, 1)?;
    let name = query.needed("pipeline")?;
    let scope = tenant(&mut query, &asker.0);
    let page = query.page()?;
    query.end()?;
    let scope = of_pipeline(&asker.0, scope, &name)?;
    let pipeline = Pipeline::builder(&served.semel, &name).scope(&scope).build()?;
    let wanted = ReceiptsAfter { after: page.after, limit: page.limit };
    let found = pipeline.receipts(&ReceiptFilter::default(), wanted).await?;
    let content = if asker.0.may(Need::Content) { Content::Base64 } else { Content::Hidden };
    let receipts = found
        .events
        .iter()
        .map(|event| written(&ReceiptView::of(event, content)))
        .collect::<Result<_, _>>()?;
    Answer::of(&Receipts { receipts, next: found.next.map(Id) })
}

/// Sends a dead letter back.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RequeueRecord<'a> {
    /// Why, in words for people.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 4_096, example = "the parser is mended"))]
    reason: Text<'a>,
    /// Only if the event was requeued so often before: `requeue` of its receipt.
    requeues_before: Option<u32>,
}

/// Have a dead letter processed again by a consumer of its pipeline
///
/// Written into the store: a running consumer takes it up within seconds, else the next that starts. It runs once, out of order,
/// with the payload that its receipt keeps.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/records/{id}/requeue", tag = "operate", operation_id = "requeue_record",
    params(("id" = String, Path, description = "What identifies the receipt: 64 hex digits.")),
    request_body = RequeueRecord,
    responses((status = 200, description = "What became of it.", body = RequeueView,
        example = json!({"decision": "requeued", "number": 1, "message": "Requeued: a consumer of the pipeline takes it up within seconds, or when one starts."})), Refused)))]
pub(super) async fn requeue(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    Path(digits): Path<String>,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Act, 1)?;
    let wanted = body.read::<RequeueRecord<'_>>()?;
    let reason = bounded("reason", &wanted.reason)?.to_owned();
    let (record, _) = found(&served, &asker.0, id(&digits).map_err(Problem::invalid)?).await?;
    let Some((pipeline, event)) = Pipeline::of_record(&served.semel, &record.key) else {
        return Answer::of(&RequeueView::not_dead());
    };
    let ask = RequeueAsk { event, requeues_before: wanted.requeues_before };
    let answer = operator_actions::requeue(&served, &asker.0, pipeline, ask, reason).await?;
    Answer::of(&RequeueView::from(answer))
}

/// The tenant that is meant: what was given, or all that the caller has.
fn tenant(query: &mut Query, caller: &Caller) -> Vec<Box<str>> {
    let given: Vec<Box<str>> = query.all("scope").into_iter().map(|part| part.trim().into()).collect();
    if given.is_empty() { caller.scope().to_vec() } else { given }
}

/// The tenant of a pipeline that this caller reaches: the pipeline's name is the last part of its records' scopes.
pub(super) fn of_pipeline(
    caller: &Caller,
    scope: Vec<Box<str>>,
    pipeline: &str,
) -> Result<Vec<Box<str>>, Problem> {
    let mut whole = scope.clone();
    whole.push(pipeline.trim().into());
    if whole.starts_with(caller.scope()) {
        return Ok(scope);
    }
    Err(Problem::forbidden("the pipeline is outside this token's scope"))
}
