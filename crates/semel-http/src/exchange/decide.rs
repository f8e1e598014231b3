//! From a covered request to a decision: its key, its caller, its body, its fingerprint, and the claim.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version, request};
use http_body::Body;
use metrics::counter;
use semel::{Claim, Decision, Error, ErrorKind, Fingerprint, Key, Lapse, OnOutage, Permit, RecordId};
use tokio::time::Instant;

use super::deadline::{Deadline, after};
use super::run::Grant;
use crate::body::{Read, RequestBody, ResponseBody, Whole, read};
use crate::budget::{Admitted, Reserved};
use crate::caller::Caller;
use crate::decided::{Decided, DecisionKind};
use crate::http_record;
use crate::identity::{claimed_as, identify, labelled};
use crate::layer::{IdempotencyLayer, Inner};
use crate::observer::RequestObserver;
use crate::problem::{Code, Problem};
use crate::profile::{Rules, WhileRunning};
use crate::refusal::{held, in_flight, mismatch, overloaded, store_unavailable};
use crate::request_id::request_id_beside_key;
use crate::stored_response::replayed;

/// How long to wait for the rest of a request that is refused, before its connection is closed instead.
const DRAIN: Duration = Duration::from_secs(1);

/// Decides on a covered request: it may run, or this is its answer.
///
/// May be dropped at any await: nothing has run yet, and the engine gives back a grant that its caller does not hear of.
#[expect(clippy::manual_async_fn, reason = "an `async fn` would hold its arguments twice")]
pub(crate) fn decide<S, B, R>(
    layer: IdempotencyLayer,
    rules: Arc<Rules>,
    service: S,
    request: Request<B>,
) -> impl Future<Output = Result<Grant<S, B>, Response<ResponseBody<R>>>>
where
    B: Body<Data = Bytes>,
{
    async move {
        let inner = &*layer.inner;
        let mut deadline = Deadline::default();
        let (mut parts, body) = request.into_parts();
        let version = parts.version;
        let identity = match identify(inner, &rules, &parts) {
            Ok(identified) => identified,
            Err(problem) => {
                let problem = drained(&mut deadline, body, rules.request_bytes_max, problem).await;
                return Err(refusal(inner, problem, version, None, DecisionKind::Refused));
            }
        };
        observe(&parts, &identity.key);
        let refuse =
            |problem, key: &Key, decision| refusal(inner, problem, version, Some(key.id()), decision);
        // The room of a run is reserved before it can be granted.
        let Admitted { request: request_room, response: response_room } =
            match inner.shared.budget.admit(&identity.caller) {
                Ok(admitted) => admitted,
                Err(full) => {
                    let problem =
                        drained(&mut deadline, body, rules.request_bytes_max, overloaded(full)).await;
                    return Err(refuse(problem, &identity.key, DecisionKind::Refused));
                }
            };
        let whole = match whole(inner, &rules, &mut deadline, body, request_room).await {
            Ok(whole) => whole,
            Err(problem) => return Err(refuse(problem, &identity.key, DecisionKind::Refused)),
        };
        let (key, print) = match claimed_as(inner, &rules, &identity, &parts, &whole.bytes).await {
            Ok(claimed_as) => claimed_as,
            Err(error) => {
                return Err(refuse(store_unavailable(&error), &identity.key, DecisionKind::Refused));
            }
        };
        observe(&parts, &key);
        let caller = identity.caller;
        if let Some(problem) = over_quota(inner, &mut deadline, &caller, &key).await {
            return Err(refuse(problem, &key, DecisionKind::Refused));
        }
        let claim = || claim(inner, &rules, &caller, &key, print, &parts);
        let (problem, decision) = match claimed_or_probed(inner, &rules, &mut deadline, &claim, &parts).await
        {
            Ok(Decision::Run(permit) | Decision::Unprotected(permit)) => {
                parts.extensions.insert::<Permit>(permit.clone());
                let request = Request::from_parts(parts, RequestBody::whole(whole));
                return Ok(Grant {
                    layer,
                    rules,
                    caller,
                    permit,
                    deadline,
                    room: response_room.granted(),
                    service,
                    request,
                });
            }
            Ok(Decision::Replay(replay)) => {
                match replayed(&replay, &inner.settings.profile.names, response_room) {
                    Ok(response) => return Err(response),
                    Err(problem) => (problem, DecisionKind::Replay),
                }
            }
            Ok(Decision::Busy(busy)) => (in_flight(&busy), DecisionKind::Busy),
            Ok(Decision::Mismatch(_)) => (mismatch(), DecisionKind::Mismatch),
            Ok(Decision::Held(found)) => (held(&found, &rules), DecisionKind::Held),
            Err(error) => (store_unavailable(&error), DecisionKind::Refused),
        };
        Err(refuse(problem, &key, decision))
    }
}

/// Says which record the request is about, to whoever follows it.
fn observe(parts: &request::Parts, key: &Key) {
    if let Some(RequestObserver(observer)) = parts.extensions.get() {
        observer.identified(key.id());
    }
}

fn refusal<R>(
    inner: &Inner,
    problem: Problem,
    version: Version,
    key: Option<RecordId>,
    decision: DecisionKind,
) -> Response<ResponseBody<R>> {
    let code = Some(problem.code());
    let mut response = problem.response(&inner.settings.profile, version);
    response.extensions_mut().insert(Decided { decision, code, key });
    response
}

async fn whole<B: Body<Data = Bytes>>(
    inner: &Inner,
    rules: &Rules,
    deadline: &mut Deadline,
    body: B,
    room: Reserved,
) -> Result<Whole, Problem> {
    if body.is_end_stream() {
        return Ok(Whole::default());
    }
    let body = pin!(body);
    let reading = pin!(read(body, rules.request_bytes_max, room));
    let until = after(inner.settings.body_timeout);
    let Ok(read) = deadline.limit(until, reading).await else { return Err(body_incomplete()) };
    match read {
        Read::Whole(whole) => Ok(whole),
        Read::TooLong(_) => Err(Problem::new(
            Code::BodyTooLarge,
            format!("With a key, a body may have at most {} bytes. Nothing ran.", rules.request_bytes_max),
        )
        .closing()),
        Read::NoRoom(full, _) => Err(overloaded(full).closing()),
        Read::Broken(_) => Err(body_incomplete()),
    }
}

fn body_incomplete() -> Problem {
    let detail = "The body broke off or did not come in time. Nothing ran; send it again.";
    Problem::new(Code::BodyIncomplete, detail).closing()
}

/// Reads the rest of a request that is refused, so that its connection can be used on; or says that it cannot.
async fn drained<B: Body<Data = Bytes>>(
    deadline: &mut Deadline,
    body: B,
    bytes_max: usize,
    problem: Problem,
) -> Problem {
    if body.is_end_stream() {
        return problem;
    }
    let mut body = pin!(body);
    let mut left = bytes_max;
    let all = pin!(async {
        while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
            let length = frame.ok()?.data_ref().map_or(0, Bytes::len);
            left = left.checked_sub(length)?;
        }
        Some(())
    });
    match deadline.limit(after(DRAIN), all).await {
        Ok(Some(())) => problem,
        Ok(None) | Err(_) => problem.closing(),
    }
}

fn claim(
    inner: &Inner,
    rules: &Rules,
    caller: &Caller,
    key: &Key,
    print: Fingerprint,
    parts: &request::Parts,
) -> Claim {
    let claim = http_record::owned(Claim::new(key), caller.as_str(), inner.semel.owner());
    let claim = labelled(claim, parts)
        .fingerprint(print)
        .lease(rules.lease)
        .retention(rules.retention)
        .lapse(if rules.probe.is_some() { Lapse::Hold } else { rules.lapse })
        .on_outage(rules.on_outage);
    // A new record remembers which request made it.
    let claim = match request_id_beside_key(&parts.headers, &inner.settings.profile.names) {
        Some(id) => claim.first_event(id),
        None => claim,
    };
    let claim = match rules.attempts_max {
        Some(attempts) => claim.attempts_max(attempts),
        None => claim,
    };
    match rules.while_running {
        WhileRunning::Reject => claim,
        WhileRunning::Wait(span) => claim.wait_up_to(span),
    }
}

/// Claims; and claims again with the probe where the first claim found the key held. So a probe costs nothing before it is
/// needed. A place for it is taken first: a claim that offers a probe writes that one began, and no other may for a while.
async fn claimed_or_probed(
    inner: &Inner,
    rules: &Arc<Rules>,
    deadline: &mut Deadline,
    claim: &impl Fn() -> Claim,
    parts: &request::Parts,
) -> semel::Result<Decision> {
    let decision = claimed(inner, rules, deadline, claim, Duration::ZERO).await;
    let (Ok(Decision::Held(_)), Some(probe)) = (&decision, &rules.probe) else { return decision };
    let Ok(_place) = inner.shared.probes.try_acquire() else {
        counter!(semel::metrics::PROBES_DEFERRED.name).increment(1);
        return decision;
    };
    let probing = || probe.join(claim(), rules, parts);
    claimed(inner, rules, deadline, &probing, probe.timeout_span()).await
}

/// Claims, and gives up on a store that does not answer in time.
async fn claimed(
    inner: &Inner,
    rules: &Rules,
    deadline: &mut Deadline,
    claim: &impl Fn() -> Claim,
    more: Duration,
) -> semel::Result<Decision> {
    let patience = match rules.while_running {
        WhileRunning::Reject => inner.settings.store_timeout,
        WhileRunning::Wait(span) => inner.settings.store_timeout.saturating_add(span),
    };
    let claiming = pin!(inner.semel.claim(claim()));
    if let Ok(decision) = deadline.limit(after(patience.saturating_add(more)), claiming).await {
        return decision;
    }
    let error = Error::new(ErrorKind::Unavailable, "the store did not answer in time; ask again");
    match rules.on_outage {
        OnOutage::Closed => Err(error),
        OnOutage::Open => Ok(Decision::Unprotected(inner.semel.unprotected(&claim(), &error))),
    }
}

/// Whether a caller is over its quota, and asks for something new. What is there already may always be asked for again;
/// a run that was given back left nothing.
async fn over_quota(inner: &Inner, deadline: &mut Deadline, caller: &Caller, key: &Key) -> Option<Problem> {
    let quotas = inner.settings.quotas.as_ref()?;
    let retry_after = inner.shared.usage.is_over(caller, key.id(), quotas, Instant::now())?;
    let loading = pin!(inner.semel.get(key));
    match deadline.limit(after(inner.settings.store_timeout), loading).await {
        Ok(Ok(Some(record))) if record.attempt > 0 => None,
        Ok(Ok(_) | Err(_)) | Err(_) => Some(
            Problem::new(Code::QuotaExceeded, "Too much was asked for with new keys. Nothing ran.")
                .retry_after(retry_after),
        ),
    }
}
