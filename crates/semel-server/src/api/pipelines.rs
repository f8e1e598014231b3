//! Offsets and receipts of pipelines.

use semel_stream::{Pipeline, ReceiptFilter, ReceiptsAfter};
use serde::Serialize;
use serde_json::value::RawValue;

use super::ask::{Answer, Look, Query, admit, within};
#[cfg(feature = "openapi")]
use super::openapi::Looked;
use super::problem::Problem;
use super::records::{Counts, look, written};
use crate::access::{Caller, Need};
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
