//! What is asked under a permit: complete, release, hold, renew, resume and step, one or many.

use semel::{ErrorKind, HoldAnswer, Outcome, Permit, ReleaseAnswer, Renewal};

use super::ask::{Answer, Ask, answers};
use super::claim::handed_out;
#[cfg(feature = "openapi")]
use super::openapi::Refused;
use super::permit_text;
use super::problem::Problem;
#[cfg(feature = "openapi")]
use super::wire::{Answers, Batch};
use super::wire::{
    Complete, Completed, Held, Hold, OutcomeAs, Release, Released, Renew, Renewed, Resume, Resumed, Run,
    Step, Stepped,
};
use crate::monitoring::{DecisionKind, Seen};
use crate::serve::note_key;
use crate::state::AppState;
use semel_ops::record_json::{Moment, millis};

/// End the run with an outcome, which every retry gets
///
/// After a lost reply the same call may be made again: the same outcome under the same permit is harmless.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/complete", tag = "work", operation_id = "complete", request_body = Complete,
    responses((status = 200, description = "The decision.", body = Completed, example = json!({"decision": "done", "remembered_until": "2026-11-17T02:14:26.123456Z"})), Refused)))]
pub(super) async fn complete(ask: Ask) -> Result<Answer, Problem> {
    let (permit, outcome) = to_complete(&ask, &ask.one()?)?;
    Answer::of(&completed(&ask.served, permit, outcome).await?)
}

/// End up to 1,000 runs in one request
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/complete/batch", tag = "work", operation_id = "complete_batch",
    request_body = Batch<Complete>,
    responses((status = 200, description = "The decisions, in order.", body = Answers<Completed>, example = json!({"answers": [{"decision": "done", "remembered_until": "2026-11-17T02:14:26.123456Z"}]})), Refused)))]
pub(super) async fn complete_batch(ask: Ask) -> Result<Answer, Problem> {
    let wanted = ask.many(|item: Complete<'_>| to_complete(&ask, &item))?;
    answers(wanted, |(permit, outcome)| completed(&ask.served, permit, outcome)).await
}

fn to_complete(ask: &Ask, wanted: &Complete<'_>) -> Result<(Permit, Outcome), Problem> {
    let outcome = match &wanted.outcome {
        Some(outcome) => outcome.outcome()?,
        None => Outcome::success(""),
    };
    Ok((permit(ask, &wanted.permit)?, outcome))
}

async fn completed(served: &AppState, permit: Permit, outcome: Outcome) -> Result<Completed, Problem> {
    let Some(()) = kept(served, &permit, permit.complete(outcome).await)? else { return Ok(Completed::Lost) };
    over(served, &permit, DecisionKind::Done);
    Ok(Completed::Done { remembered_until: permit.remembered_until().map(Moment) })
}

/// Give up, so that another may run
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/release", tag = "work", operation_id = "release", request_body = Release,
    responses((status = 200, description = "The decision.", body = Released, example = json!({"decision": "released"})), Refused)))]
pub(super) async fn release(ask: Ask) -> Result<Answer, Problem> {
    let (permit, reason) = to_release(&ask, &ask.one()?)?;
    Answer::of(&released(&ask.served, permit, reason).await?)
}

/// Give up to 1,000 runs back in one request
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/release/batch", tag = "work", operation_id = "release_batch",
    request_body = Batch<Release>,
    responses((status = 200, description = "The decisions, in order.", body = Answers<Released>, example = json!({"answers": [{"decision": "released"}]})), Refused)))]
pub(super) async fn release_batch(ask: Ask) -> Result<Answer, Problem> {
    let wanted = ask.many(|item: Release<'_>| to_release(&ask, &item))?;
    answers(wanted, |(permit, reason)| released(&ask.served, permit, reason)).await
}

fn to_release(ask: &Ask, wanted: &Release<'_>) -> Result<(Permit, Box<str>), Problem> {
    Ok((permit(ask, &wanted.permit)?, wanted.reason()?.into()))
}

async fn released(served: &AppState, permit: Permit, reason: Box<str>) -> Result<Released, Problem> {
    Ok(match permit.release(&reason).await? {
        ReleaseAnswer::Released => {
            over(served, &permit, DecisionKind::Released);
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
pub(super) async fn hold(ask: Ask) -> Result<Answer, Problem> {
    let wanted = ask.one::<Hold<'_>>()?;
    let permit = permit(&ask, &wanted.permit)?;
    Answer::of(&match permit.hold(wanted.reason()?).await? {
        HoldAnswer::Held => {
            over(&ask.served, &permit, DecisionKind::Held);
            Held::Held
        }
        HoldAnswer::NotHolding => {
            ask.served.api.granted.forget(&permit);
            Held::NotHolding
        }
    })
}

/// Start the lease anew
///
/// Renew at a third of the lease. A caller whose permit is lost should stop. A run that was completed under
/// this permit has nothing to renew: `done` says so, and nothing is lost.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/renew", tag = "work", operation_id = "renew", request_body = Renew,
    responses((status = 200, description = "The decision.", body = Renewed, example = json!({"decision": "renewed", "lease_ms": 60000})), Refused)))]
pub(super) async fn renew(ask: Ask) -> Result<Answer, Problem> {
    let permit = permit(&ask, &ask.one::<Renew<'_>>()?.permit)?;
    Answer::of(&renewed(&ask.served, permit).await?)
}

/// Start up to 1,000 leases anew in one request
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/renew/batch", tag = "work", operation_id = "renew_batch",
    request_body = Batch<Renew>,
    responses((status = 200, description = "The decisions, in order.", body = Answers<Renewed>, example = json!({"answers": [{"decision": "renewed", "lease_ms": 60000}]})), Refused)))]
pub(super) async fn renew_batch(ask: Ask) -> Result<Answer, Problem> {
    let wanted = ask.many(|item: Renew<'_>| permit(&ask, &item.permit))?;
    answers(wanted, |permit| renewed(&ask.served, permit)).await
}

async fn renewed(served: &AppState, permit: Permit) -> Result<Renewed, Problem> {
    Ok(match kept(served, &permit, permit.renew().await)? {
        Some(Renewal::Renewed) => {
            let lease_ms = millis(permit.lease());
            served.api.granted.keep(permit);
            Renewed::Renewed { lease_ms }
        }
        Some(Renewal::Done) => {
            served.api.granted.forget(&permit);
            Renewed::Done
        }
        None => Renewed::Lost,
    })
}

/// Go on under a permit that another process was granted
///
/// Renews it, so that its new holder knows how long it is good, and tells what the claim was told: attempt, fence, and the
/// steps that are finished by now.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/resume", tag = "work", operation_id = "resume", request_body = Resume,
    responses((status = 200, description = "The decision.", body = Resumed, example = json!({"decision": "lost"})), Refused)))]
pub(super) async fn resume(ask: Ask) -> Result<Answer, Problem> {
    let wanted = ask.one::<Resume<'_>>()?;
    let content = OutcomeAs::content(wanted.outcome_as, &ask.asker.0);
    let permit = permit(&ask, &wanted.permit)?;
    match kept(&ask.served, &permit, permit.renew().await)? {
        Some(Renewal::Renewed) => {}
        Some(Renewal::Done) => {
            ask.served.api.granted.forget(&permit);
            return Answer::of(&Resumed::Done);
        }
        None => return Answer::of(&Resumed::Lost),
    }
    let granting = handed_out(&ask.served, &permit);
    Answer::of(&Resumed::Run(Run::of(&permit, &granting, content)))
}

/// Store the value of a finished step, so that a next attempt goes on after it
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/step", tag = "work", operation_id = "step", request_body = Step,
    responses((status = 200, description = "The decision.", body = Stepped, example = json!({"decision": "stored"})), Refused)))]
pub(super) async fn step(ask: Ask) -> Result<Answer, Problem> {
    let wanted = ask.one::<Step<'_>>()?;
    let (name, value) = (wanted.name()?, wanted.value()?);
    let permit = permit(&ask, &wanted.permit)?;
    let stored = kept(&ask.served, &permit, permit.put_step(name, value).await)?;
    if stored.is_some() {
        ask.served.api.granted.keep(permit);
    }
    Answer::of(&stored.map_or(Stepped::Lost, |()| Stepped::Stored))
}

/// The permit that this text stands for: the one that was granted here, or one that is rebuilt from the text.
fn permit(ask: &Ask, text: &str) -> Result<Permit, Problem> {
    let (served, caller) = (&ask.served, &ask.asker.0);
    let presented = permit_text::read(text)?;
    let granted = served.api.granted.get(presented.permit_id(), presented.fence());
    let permit = match granted.filter(|permit| presented.is_for(permit.key())) {
        Some(permit) => permit,
        None => served.semel.permit(presented.parts()?),
    };
    note_key(permit.key().id());
    if caller.reaches(permit.key()) {
        Ok(permit)
    } else {
        Err(Problem::forbidden("the permit's key is outside this token's scope"))
    }
}

/// What was told under a permit; `None` if another run took over, or the record is gone: then the run is over.
fn kept<T>(served: &AppState, permit: &Permit, told: semel::Result<T>) -> Result<Option<T>, Problem> {
    match told {
        Ok(told) => Ok(Some(told)),
        Err(error) if error.kind() == ErrorKind::Lost => {
            over(served, permit, DecisionKind::Lost);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The run is over: tells whoever listens, and forgets the permit.
fn over(served: &AppState, permit: &Permit, decision: DecisionKind) {
    served.api.granted.forget(permit);
    served.live.tell(|| Seen { decision, key: permit.key().clone(), attempt: Some(permit.attempt()) });
}
