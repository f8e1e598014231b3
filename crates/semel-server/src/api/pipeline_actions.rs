//! What operators do to pipelines: note an event as processed, and have a stream read from somewhere else.

use std::sync::Arc;

use axum::extract::State;
use semel_stream::{Pipeline, Position};
use serde::Deserialize;

use super::ask::{Answer, Json, admit};
#[cfg(feature = "openapi")]
use super::openapi::Refused;
use super::pipelines::of_pipeline;
use super::problem::Problem;
use super::wire::Text;
use crate::access::{Authenticated, Caller, Need};
use crate::operator_actions;
use crate::state::AppState;
#[cfg(feature = "openapi")]
use semel_ops::operator::{EventNoted, OffsetMoved};

/// Notes an event as processed.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RecordEvent<'a> {
    /// The tenant's path, outermost first; the token's scope if it is not given.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    scope: Option<Vec<Text<'a>>>,
    /// The name of the pipeline.
    #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, example = "billing"))]
    pipeline: Text<'a>,
    /// The key of the event.
    #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, example = "order-1042"))]
    event: Text<'a>,
}

/// Moves the offset of a stream.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct MoveOffset<'a> {
    /// The tenant's path, outermost first; the token's scope if it is not given.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    scope: Option<Vec<Text<'a>>>,
    /// The name of the pipeline.
    #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, example = "billing"))]
    pipeline: Text<'a>,
    /// The stream.
    #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, example = "orders/0"))]
    stream: Text<'a>,
    /// The last position that counts as read; `null` for the start.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, example = "41991"))]
    to: Option<Text<'a>>,
    /// Only if the stream is still read in this epoch; 0: only if nobody has begun to read it.
    epoch: Option<u64>,
}

/// Note an event as processed, without processing it
///
/// For events that are to be passed over, and for held ones whose effect is known to have happened. It cannot be undone.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/receipts/record", tag = "operate", operation_id = "record_event",
    request_body = RecordEvent,
    responses((status = 200, description = "What became of it.", body = EventNoted, example = json!({"decision": "recorded"})), Refused)))]
pub(super) async fn record_event(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Act, 1)?;
    let wanted = body.read::<RecordEvent<'_>>()?;
    let pipeline = pipeline(&served, &asker.0, wanted.scope.as_deref(), &wanted.pipeline)?;
    let event = wanted.event.to_string();
    Answer::of(&operator_actions::record_event(&served, &asker.0, pipeline, event).await?)
}

/// Have a stream read again from somewhere, or skip a part of it
///
/// Whoever reads the stream now is fenced: its next commit is refused. For streams that one reader reads at a time.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/offsets/move", tag = "operate", operation_id = "move_offset",
    request_body = MoveOffset,
    responses((status = 200, description = "What became of it.", body = OffsetMoved, example = json!({"decision": "moved", "position": "41991", "epoch": 4})), Refused)))]
pub(super) async fn move_offset(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Act, 1)?;
    let wanted = body.read::<MoveOffset<'_>>()?;
    let to = wanted.to.as_deref().map(position).transpose()?;
    let pipeline = pipeline(&served, &asker.0, wanted.scope.as_deref(), &wanted.pipeline)?;
    let (stream, epoch) = (wanted.stream.to_string(), wanted.epoch);
    Answer::of(&operator_actions::move_offset(&served, &asker.0, pipeline, stream, to, epoch).await?)
}

fn position(text: &str) -> Result<Position, Problem> {
    let number = text.parse::<u128>();
    number
        .map(Position::new)
        .map_err(|_| Problem::invalid("to: write a number as text, or null for the start"))
}

/// The pipeline that is meant, if this caller reaches it.
fn pipeline(
    served: &AppState,
    caller: &Caller,
    scope: Option<&[Text<'_>]>,
    name: &str,
) -> Result<Pipeline, Problem> {
    let scope = match scope {
        Some(parts) => parts.iter().map(|part| part.trim().into()).collect(),
        None => caller.scope().to_vec(),
    };
    let scope = of_pipeline(caller, scope, name)?;
    Ok(Pipeline::builder(&served.semel, name).scope(&scope).build()?)
}
