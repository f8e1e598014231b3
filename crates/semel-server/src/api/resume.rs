//! Going on under a permit that another process was granted.

use std::sync::Arc;

use axum::extract::State;
use semel::ErrorKind;

use super::admit::admit;
use super::body::{Answer, Json};
use super::claim::handed_out;
#[cfg(feature = "openapi")]
use super::openapi::Refused;
use super::problem::Problem;
use super::settle::{over, permit};
use super::wire::{OutcomeAs, Resume, Resumed, Run};
use crate::access::{Authenticated, Need};
use crate::state::AppState;

/// Go on under a permit that another process was granted
///
/// Renews it, so that its new holder knows how long it is good, and tells what the claim was told: attempt, fence, and the
/// steps that are finished by now.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/resume", tag = "work", operation_id = "resume", request_body = Resume,
    responses((status = 200, description = "The decision.", body = Resumed, example = json!({"decision": "lost"})), Refused)))]
pub(super) async fn resume(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Claim, 1)?;
    let wanted = body.read::<Resume<'_>>()?;
    let content = OutcomeAs::content(wanted.outcome_as, &asker.0);
    let permit = permit(&served, &asker.0, &wanted.permit)?;
    match permit.renew().await {
        Ok(()) => {
            let granting = handed_out(&served, &permit);
            Answer::of(&Resumed::Run(Run::of(&permit, &granting, content)))
        }
        Err(error) if error.kind() == ErrorKind::Lost => {
            over(&served, &permit, "lost");
            Answer::of(&Resumed::Lost)
        }
        Err(error) => Err(error.into()),
    }
}
