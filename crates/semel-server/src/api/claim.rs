//! Claims and `record_once`, one or many.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use semel::{Decision, Permit};

use super::admit::admit;
use super::body::{Answer, Json};
use super::each::each;
#[cfg(feature = "openapi")]
use super::openapi::Refused;
use super::permit_text;
use super::problem::Problem;
use super::wire::{Answers, Asked, Batch, Claim, Decided, Granting, RecordOnce, RecordedOnce};
use crate::access::{Authenticated, Caller, Need};
use crate::monitoring::Seen;
use crate::state::AppState;

/// Claim a key: exactly one of all callers is told to run
///
/// With a `permit_id`, the same claim may be sent again after a lost reply and finds its own run. Without one, a claim
/// whose caller went away before it could be told is given back at once.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/claim", tag = "work", operation_id = "claim", request_body = Claim,
    responses((status = 200, description = "The decision.", body = Decided, example = json!({"decision": "run", "id": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "permit": "p1.AAAAAAAAAAAAAAAAAAAAAQ", "attempt": 1, "fence": 17, "lease_ms": 60000, "steps": []})), Refused)))]
pub(super) async fn claim(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Claim, 1)?;
    let Asked { claim, wait, content } = body.read::<Claim<'_>>()?.asked(&asker.0)?;
    let decision =
        if wait.is_zero() { served.semel.claim(claim).await? } else { patient(&served, claim, wait).await? };
    let granting = granting(&served, &decision);
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
pub(super) async fn claim_batch(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    asker.need(Need::Claim)?;
    let wanted: Vec<_> = {
        let items = body.read::<Batch<Claim<'_>>>()?.items()?;
        admit(&asker, Need::Claim, items.len())?;
        items.iter().map(|item| asked_at_once(item, &asker.0)).collect()
    };
    let decided = each(wanted.into_iter().map(async |wanted| {
        let Asked { claim, content, .. } = wanted?;
        let decision = served.semel.claim(claim).await?;
        let granting = granting(&served, &decision);
        Ok((decision, granting, content))
    }))
    .await;
    Answer::of(&Answers::of(decided.iter().map(|decided: &Result<_, Problem>| match decided {
        Ok((decision, granting, content)) => Decided::of(decision, granting, *content),
        Err(problem) => Err(problem.clone()),
    })))
}

fn asked_at_once(item: &Claim<'_>, caller: &Caller) -> Result<Asked, Problem> {
    let wanted = item.asked(caller)?;
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
pub(super) async fn record_once(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    admit(&asker, Need::Claim, 1)?;
    let (claim, outcome) = body.read::<RecordOnce<'_>>()?.split();
    let (Asked { claim, content, .. }, outcome) = (claim.asked(&asker.0)?, outcome.outcome()?);
    let once = served.semel.record_once(claim, outcome).await?;
    tell_once(&served, &once);
    Answer::of(&RecordedOnce::of(&once, content))
}

/// Store up to 1,000 outcomes in one request
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/record_once/batch", tag = "work", operation_id = "record_once_batch",
    request_body = Batch<RecordOnce>,
    responses((status = 200, description = "The decisions, in order.", body = Answers<RecordedOnce>, example = json!({"answers": [{"decision": "recorded", "id": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "remembered_until": "2026-11-17T02:14:26.123456Z"}]})), Refused)))]
pub(super) async fn record_once_batch(
    State(served): State<Arc<AppState>>,
    asker: Authenticated,
    body: Json,
) -> Result<Answer, Problem> {
    asker.need(Need::Claim)?;
    let wanted: Vec<_> = {
        let items = body.read::<Batch<RecordOnce<'_>>>()?.items()?;
        admit(&asker, Need::Claim, items.len())?;
        let wanted = |item: RecordOnce<'_>| {
            let (claim, outcome) = item.split();
            Ok::<_, Problem>((claim.asked(&asker.0)?, outcome.outcome()?))
        };
        items.into_iter().map(wanted).collect()
    };
    let decided = each(wanted.into_iter().map(async |wanted| {
        let (Asked { claim, content, .. }, outcome) = wanted?;
        let once = served.semel.record_once(claim, outcome).await?;
        tell_once(&served, &once);
        Ok((once, content))
    }))
    .await;
    Answer::of(&Answers::of(decided.iter().map(|decided: &Result<_, Problem>| match decided {
        Ok((once, content)) => Ok(RecordedOnce::of(once, *content)),
        Err(problem) => Err(problem.clone()),
    })))
}

/// Tells whoever listens; keeps the permit of a run, and writes it as text.
fn granting(served: &AppState, decision: &Decision) -> Granting {
    let told = |key: &semel::Key, attempt: u32| Seen {
        decision: decision.word(),
        key: key.clone(),
        attempt: Some(attempt),
    };
    let of_record = |record: &semel::record::Record| told(&record.key, record.attempt);
    match decision {
        Decision::Run(permit) => {
            served.live.tell(|| told(permit.key(), permit.attempt()));
            return handed_out(served, permit);
        }
        Decision::Replay(replay) => served.live.tell(|| of_record(replay.record())),
        Decision::Busy(busy) => served.live.tell(|| of_record(busy.record())),
        Decision::Mismatch(mismatch) => served.live.tell(|| of_record(mismatch.record())),
        Decision::Held(held) => served.live.tell(|| of_record(held.record())),
        Decision::Unprotected(_) => {}
    }
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
    let (word, record) = match once {
        // It was granted and completed in one: both ends are told as the end.
        semel::RecordedOnce::Recorded(record) => ("done", record),
        semel::RecordedOnce::Replay(replay) => ("replay", replay.record()),
        semel::RecordedOnce::Busy(busy) => ("busy", busy.record()),
        semel::RecordedOnce::Mismatch(mismatch) => ("mismatch", mismatch.record()),
        semel::RecordedOnce::Held(held) => ("held", held.record()),
    };
    served.live.tell(|| Seen { decision: word, key: record.key.clone(), attempt: Some(record.attempt) });
}
