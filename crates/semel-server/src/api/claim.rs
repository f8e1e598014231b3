//! Claims and `record_once`, one or many.

use std::time::Duration;

use semel::{Decision, Outcome, Permit};

use super::ask::{Answer, Ask, each};
#[cfg(feature = "openapi")]
use super::openapi::Refused;
use super::permit_text;
use super::problem::Problem;
#[cfg(feature = "openapi")]
use super::wire::Batch;
use super::wire::{Answers, Asked, Claim, Decided, Granting, RecordOnce, RecordedOnce};
use crate::monitoring::{DecisionKind, Seen};
use crate::state::AppState;
use semel_ops::record_json::Content;

/// Claim a key: exactly one of all callers is told to run
///
/// With a `permit_id`, the same claim may be sent again after a lost reply and finds its own run. Without one, a claim
/// whose caller went away before it could be told is given back at once.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/claim", tag = "work", operation_id = "claim", request_body = Claim,
    responses((status = 200, description = "The decision.", body = Decided, example = json!({"decision": "run", "id": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "permit": "p1.AAAAAAAAAAAAAAAAAAAAAQ", "attempt": 1, "fence": 17, "lease_ms": 60000, "steps": []})), Refused)))]
pub(super) async fn claim(ask: Ask) -> Result<Answer, Problem> {
    let Asked { claim, wait, content } = ask.one::<Claim<'_>>()?.asked(&ask.asker.0, ask.request_id())?;
    let served = &ask.served;
    let decision =
        if wait.is_zero() { served.semel.claim(claim).await? } else { patient(served, claim, wait).await? };
    let granting = granting(served, &decision);
    Answer::of(&Decided::of(&decision, &granting, content)?)
}

/// Waits for a running caller to settle. With too many waiting, or while the server stops, the key is just busy.
async fn patient(served: &AppState, claim: semel::Claim, wait: Duration) -> Result<Decision, Problem> {
    let Some(mut waiting) = served.waits.enter() else { return Ok(served.semel.claim(claim).await?) };
    let at_once = claim.clone();
    tokio::select! {
        biased;
        decision = served.semel.claim(claim.wait_up_to(wait)) => Ok(decision?),
        () = waiting.cut_short() => Ok(served.semel.claim(at_once).await?),
    }
}

/// Claim up to 1,000 keys in one request
///
/// Each is decided by itself, and the answers come in the order of the items. They ride to the store together.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/claim/batch", tag = "work", operation_id = "claim_batch",
    request_body = Batch<Claim>,
    responses((status = 200, description = "The decisions, in order.", body = Answers<Decided>, example = json!({"answers": [{"decision": "busy", "id": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "owner": "worker-7", "since": "2026-11-16T02:14:26.123456Z", "retry_after_ms": 41200}]})), Refused)))]
pub(super) async fn claim_batch(ask: Ask) -> Result<Answer, Problem> {
    let wanted = ask.many(|item: Claim<'_>| asked_at_once(&ask, &item))?;
    let decided = each(wanted.into_iter().map(async |wanted| {
        let Asked { claim, content, .. } = wanted?;
        let decision = ask.served.semel.claim(claim).await?;
        let granting = granting(&ask.served, &decision);
        Ok((decision, granting, content))
    }))
    .await;
    Answer::of(&Answers::of(decided.iter().map(|decided: &Result<_, Problem>| match decided {
        Ok((decision, granting, content)) => Decided::of(decision, granting, *content),
        Err(problem) => Err(problem.clone()),
    })))
}

fn asked_at_once(ask: &Ask, item: &Claim<'_>) -> Result<Asked, Problem> {
    let wanted = item.asked(&ask.asker.0, ask.request_id())?;
    if wanted.wait.is_zero() {
        return Ok(wanted);
    }
    // Whoever was told to run would hear of it only when the slowest has been waited for.
    Err(Problem::invalid("wait_ms is not for a batch; claim that key by itself"))
}

/// Store an outcome that is already there, unless the key is taken
///
/// Claim and complete in one: for work that is known to be done by the time it is told of.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/record_once", tag = "work", operation_id = "record_once",
    request_body = RecordOnce,
    responses((status = 200, description = "The decision.", body = RecordedOnce, example = json!({"decision": "recorded", "id": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "remembered_until": "2026-11-17T02:14:26.123456Z"})), Refused)))]
pub(super) async fn record_once(ask: Ask) -> Result<Answer, Problem> {
    let (once, content) = recorded(&ask, to_record(&ask, ask.one()?)?).await?;
    Answer::of(&RecordedOnce::of(&once, content))
}

/// Store up to 1,000 outcomes in one request
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/record_once/batch", tag = "work", operation_id = "record_once_batch",
    request_body = Batch<RecordOnce>,
    responses((status = 200, description = "The decisions, in order.", body = Answers<RecordedOnce>, example = json!({"answers": [{"decision": "recorded", "id": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "remembered_until": "2026-11-17T02:14:26.123456Z"}]})), Refused)))]
pub(super) async fn record_once_batch(ask: Ask) -> Result<Answer, Problem> {
    let wanted = ask.many(|item| to_record(&ask, item))?;
    let decided = each(wanted.into_iter().map(async |wanted| recorded(&ask, wanted?).await)).await;
    Answer::of(&Answers::of(decided.iter().map(|decided| match decided {
        Ok((once, content)) => Ok(RecordedOnce::of(once, *content)),
        Err(problem) => Err(problem.clone()),
    })))
}

fn to_record(ask: &Ask, wanted: RecordOnce<'_>) -> Result<(Asked, Outcome), Problem> {
    let (claim, outcome) = wanted.split();
    Ok((claim.asked(&ask.asker.0, ask.request_id())?, outcome.outcome()?))
}

async fn recorded(
    ask: &Ask,
    (asked, outcome): (Asked, Outcome),
) -> Result<(semel::RecordedOnce, Content), Problem> {
    let once = ask.served.semel.record_once(asked.claim, outcome).await?;
    tell_once(&ask.served, &once);
    Ok((once, asked.content))
}

/// Tells whoever listens; keeps the permit of a run, and writes it as text.
fn granting(served: &AppState, decision: &Decision) -> Granting {
    let (kind, record) = match decision {
        Decision::Run(permit) => {
            let (key, attempt) = (permit.key(), Some(permit.attempt()));
            served.live.tell(|| Seen { decision: DecisionKind::Run, key: key.clone(), attempt });
            return handed_out(served, permit);
        }
        Decision::Replay(replay) => (DecisionKind::Replay, replay.record()),
        Decision::Busy(busy) => (DecisionKind::Busy, busy.record()),
        Decision::Mismatch(mismatch) => (DecisionKind::Mismatch, mismatch.record()),
        Decision::Held(held) => (DecisionKind::Held, held.record()),
        Decision::Unprotected(_) => return Granting::default(),
    };
    served.live.tell(|| Seen::of(kind, record));
    Granting::default()
}

/// Keeps a permit for whoever settles it here, and writes it as text.
pub(super) fn handed_out(served: &AppState, permit: &Permit) -> Granting {
    let steps = permit.steps();
    served.api.granted.keep(permit.clone());
    let text = permit.parts().as_ref().map(permit_text::written).unwrap_or_default();
    Granting { text, steps }
}

fn tell_once(served: &AppState, once: &semel::RecordedOnce) {
    let (kind, record) = match once {
        // It was granted and completed in one: both ends are told as the end.
        semel::RecordedOnce::Recorded(record) => (DecisionKind::Done, record),
        semel::RecordedOnce::Replay(replay) => (DecisionKind::Replay, replay.record()),
        semel::RecordedOnce::Busy(busy) => (DecisionKind::Busy, busy.record()),
        semel::RecordedOnce::Mismatch(mismatch) => (DecisionKind::Mismatch, mismatch.record()),
        semel::RecordedOnce::Held(held) => (DecisionKind::Held, held.record()),
    };
    served.live.tell(|| Seen::of(kind, record));
}
