//! What is asked under a permit: complete, release, hold, renew and step, one or many.

use std::sync::Arc;

use axum::extract::State;
use semel::{ErrorKind, HoldAnswer, Outcome, Permit, ReleaseAnswer};

use super::admit::admit;
use super::body::{Answer, Json};
use super::each::each;
#[cfg(feature = "openapi")]
use super::openapi::Refused;
use super::permit_text;
use super::problem::Problem;
use super::wire::{
    Answers, Batch, Complete, Completed, Held, Hold, Release, Released, Renew, Renewed, Step, Stepped,
};
use crate::access::{Authenticated, Caller, Need};
use crate::monitoring::Seen;
use crate::state::AppState;
use semel_ops::record_json::{Moment, millis};

/// End the run with an outcome, which every retry gets
///
/// After a lost reply the same call may be made again: the same outcome under the same permit is harmless.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/complete", tag = "work", operation_id = "complete", request_body = Complete,
    responses((status = 200, description = "The decision.", body = Completed, example = json!({"decision": "done", "remembered_until": "2026-11-17T02:14:26.123456Z"})), Refused)))]
pub(super) async fn complete(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Claim, 1)?;
    let (permit, outcome) = to_complete(&served, &asker.0, &body.read()?)?;
    Answer::of(&completed(&served, permit, outcome).await?)
}

/// End up to 1,000 runs in one request
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/complete/batch", tag = "work", operation_id = "complete_batch",
    request_body = Batch<Complete>,
    responses((status = 200, description = "The decisions, in order.", body = Answers<Completed>, example = json!({"answers": [{"decision": "done", "remembered_until": "2026-11-17T02:14:26.123456Z"}]})), Refused)))]
pub(super) async fn complete_batch(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    let wanted = batch(&asker, &body, |item: &Complete<'_>| to_complete(&served, &asker.0, item))?;
    let answers = each(wanted.into_iter().map(async |wanted| {
        let (permit, outcome) = wanted?;
        completed(&served, permit, outcome).await
    }));
    Answer::of(&Answers::of(answers.await.into_iter()))
}

fn to_complete(
    served: &AppState,
    caller: &Caller,
    wanted: &Complete<'_>,
) -> Result<(Permit, Outcome), Problem> {
    let outcome = match &wanted.outcome {
        Some(outcome) => outcome.outcome()?,
        None => Outcome::success([]),
    };
    Ok((permit(served, caller, &wanted.permit)?, outcome))
}

async fn completed(served: &AppState, permit: Permit, outcome: Outcome) -> Result<Completed, Problem> {
    match permit.complete(outcome).await {
        Ok(()) => {
            over(served, &permit, "done");
            Ok(Completed::Done { remembered_until: permit.remembered_until().map(Moment) })
        }
        Err(error) if error.kind() == ErrorKind::Lost => {
            over(served, &permit, "lost");
            Ok(Completed::Lost)
        }
        Err(error) => Err(error.into()),
    }
}

/// Give up, so that another may run
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/release", tag = "work", operation_id = "release", request_body = Release,
    responses((status = 200, description = "The decision.", body = Released, example = json!({"decision": "released"})), Refused)))]
pub(super) async fn release(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Claim, 1)?;
    let wanted = body.read::<Release<'_>>()?;
    let permit = permit(&served, &asker.0, &wanted.permit)?;
    Answer::of(&released(&served, permit, wanted.reason()?).await?)
}

/// Give up to 1,000 runs back in one request
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/release/batch", tag = "work", operation_id = "release_batch",
    request_body = Batch<Release>,
    responses((status = 200, description = "The decisions, in order.", body = Answers<Released>, example = json!({"answers": [{"decision": "released"}]})), Refused)))]
pub(super) async fn release_batch(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    let wanted = batch(&asker, &body, |item: &Release<'_>| {
        Ok((permit(&served, &asker.0, &item.permit)?, Box::<str>::from(item.reason()?)))
    })?;
    let answers = each(wanted.into_iter().map(async |wanted| {
        let (permit, reason) = wanted?;
        released(&served, permit, &reason).await
    }));
    Answer::of(&Answers::of(answers.await.into_iter()))
}

async fn released(served: &AppState, permit: Permit, reason: &str) -> Result<Released, Problem> {
    Ok(match permit.release(reason).await? {
        ReleaseAnswer::Released => {
            over(served, &permit, "released");
            Released::Released
        }
        ReleaseAnswer::NotHolding => {
            served.api.granted.forget(&permit);
            Released::NotHolding
        }
    })
}

/// End the run so that nobody may repeat it before somebody has looked at it
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/hold", tag = "work", operation_id = "hold", request_body = Hold,
    responses((status = 200, description = "The decision.", body = Held, example = json!({"decision": "held"})), Refused)))]
pub(super) async fn hold(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Claim, 1)?;
    let wanted = body.read::<Hold<'_>>()?;
    let permit = permit(&served, &asker.0, &wanted.permit)?;
    Answer::of(&match permit.hold(wanted.reason()?).await? {
        HoldAnswer::Held => {
            over(&served, &permit, "held");
            Held::Held
        }
        HoldAnswer::NotHolding => {
            served.api.granted.forget(&permit);
            Held::NotHolding
        }
    })
}

/// Start the lease anew
///
/// Renew at a third of the lease. Whoever is told that the permit is lost should stop.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/renew", tag = "work", operation_id = "renew", request_body = Renew,
    responses((status = 200, description = "The decision.", body = Renewed, example = json!({"decision": "renewed", "lease_ms": 60000})), Refused)))]
pub(super) async fn renew(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Claim, 1)?;
    let permit = permit(&served, &asker.0, &body.read::<Renew<'_>>()?.permit)?;
    Answer::of(&renewed(&served, permit).await?)
}

/// Start up to 1,000 leases anew in one request
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/renew/batch", tag = "work", operation_id = "renew_batch",
    request_body = Batch<Renew>,
    responses((status = 200, description = "The decisions, in order.", body = Answers<Renewed>, example = json!({"answers": [{"decision": "renewed", "lease_ms": 60000}]})), Refused)))]
pub(super) async fn renew_batch(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    let wanted = batch(&asker, &body, |item: &Renew<'_>| permit(&served, &asker.0, &item.permit))?;
    let answers = each(wanted.into_iter().map(async |permit| renewed(&served, permit?).await));
    Answer::of(&Answers::of(answers.await.into_iter()))
}

async fn renewed(served: &AppState, permit: Permit) -> Result<Renewed, Problem> {
    match permit.renew().await {
        Ok(()) => {
            let lease_ms = millis(permit.lease());
            served.api.granted.keep(permit);
            Ok(Renewed::Renewed { lease_ms })
        }
        Err(error) if error.kind() == ErrorKind::Lost => {
            over(served, &permit, "lost");
            Ok(Renewed::Lost)
        }
        Err(error) => Err(error.into()),
    }
}

/// Store the value of a finished step, so that a next attempt goes on after it
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/step", tag = "work", operation_id = "step", request_body = Step,
    responses((status = 200, description = "The decision.", body = Stepped, example = json!({"decision": "stored"})), Refused)))]
pub(super) async fn step(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Claim, 1)?;
    let wanted = body.read::<Step<'_>>()?;
    let (name, value) = (wanted.name()?, wanted.value()?);
    let permit = permit(&served, &asker.0, &wanted.permit)?;
    Answer::of(&match permit.put_step(name, value).await {
        Ok(()) => {
            served.api.granted.keep(permit);
            Stepped::Stored
        }
        Err(error) if error.kind() == ErrorKind::Lost => {
            over(&served, &permit, "lost");
            Stepped::Lost
        }
        Err(error) => return Err(error.into()),
    })
}

/// The asks of a batch, in the engine's words; each may be refused by itself.
fn batch<'a, T: serde::Deserialize<'a>, A>(
    asker: &Authenticated,
    body: &'a Json,
    wanted: impl Fn(&T) -> Result<A, Problem>,
) -> Result<Vec<Result<A, Problem>>, Problem> {
    asker.need(Need::Claim)?;
    let items = body.read::<Batch<T>>()?.items()?;
    admit(asker, Need::Claim, items.len())?;
    Ok(items.iter().map(wanted).collect())
}

/// The permit that this text stands for: the one that was granted here, or one that is rebuilt from the text.
pub(super) fn permit(served: &AppState, caller: &Caller, text: &str) -> Result<Permit, Problem> {
    let presented = permit_text::read(text)?;
    let granted = served.api.granted.get(presented.permit_id(), presented.fence());
    let permit = match granted.filter(|permit| presented.is_for(permit.key())) {
        Some(permit) => permit,
        None => served.semel.permit(presented.parts()?),
    };
    if caller.reaches(permit.key()) {
        Ok(permit)
    } else {
        Err(Problem::forbidden("the permit's key is outside this token's scope"))
    }
}

/// The run is over: tells whoever listens, and forgets the permit.
pub(super) fn over(served: &AppState, permit: &Permit, word: &'static str) {
    served.api.granted.forget(permit);
    served.live.tell(|| Seen { decision: word, key: permit.key().clone(), attempt: Some(permit.attempt()) });
}
