//! From a covered request to a decision: its key, its caller, its body, its fingerprint, and the claim.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, request};
use http_body::Body;
use semel::{Claim, Decision, Error, ErrorKind, Fingerprint, Key, OnOutage, Permit, RecordId, Replay};
use tokio::time::{Instant, timeout};
use tower_service::Service;

use crate::body::{Read, RequestBody, ResponseBody, Whole, read};
use crate::caller::Caller;
use crate::decided::Decided;
use crate::future::{Run, Verdict};
use crate::identity::{claimed_as, identify, label};
use crate::layer::{IdempotencyLayer, Inner};
use crate::problem::{Code, Problem};
use crate::profile::{Rules, WhileRunning};
use crate::refusal::{held, in_flight, mismatch, overloaded, store_unavailable};
use crate::replay::{Unanswerable, replayed};
use crate::run::{RunContext, panicked, run};

/// How long to wait for the rest of a request that is refused, before its connection is closed instead.
const DRAIN: Duration = Duration::from_secs(1);

/// A covered request's surroundings.
pub(crate) struct Asked<S> {
    pub(crate) layer: IdempotencyLayer,
    pub(crate) rules: Arc<Rules>,
    pub(crate) service: S,
}

/// Decides on a covered request. May be dropped at any await: nothing has run yet, and a grant that was not heard of
/// is given back.
pub(crate) async fn decide<S, B, R>(asked: Asked<S>, request: Request<B>) -> Verdict<R, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
{
    let Asked { layer, rules, service } = asked;
    let inner = &layer.inner;
    let (parts, body) = request.into_parts();
    let version = parts.version;
    let refuse = |problem: Problem, key: Option<RecordId>, decision: Option<&'static str>| {
        let mut response = problem.response(&inner.settings.profile, version);
        if let Some(decided) = response.extensions_mut().get_mut::<Decided>() {
            decided.key = key;
            decided.decision = decision.unwrap_or(decided.decision);
        }
        Verdict::Answer(Ok(response))
    };
    let identity = match identify(inner, &rules, &parts) {
        Ok(identified) => identified,
        Err(problem) => return refuse(drained(body, rules.request_bytes_max, problem).await, None, None),
    };
    let id = identity.key.id();
    let whole = match whole(inner, &rules, body).await {
        Ok(whole) => whole,
        Err(problem) => return refuse(problem, Some(id), None),
    };
    let (key, print) = match claimed_as(inner, &rules, &identity, &parts, &whole.bytes).await {
        Ok(claimed_as) => claimed_as,
        Err(error) => return refuse(store_unavailable(&error), Some(id), Some("refused")),
    };
    let (id, caller) = (key.id(), identity.caller);
    let claim = claim(&rules, &key, print, &parts);
    if let Some(problem) = over_quota(inner, &caller, &key).await {
        return refuse(problem, Some(id), None);
    }
    let (problem, decision) = match claimed(inner, &rules, claim).await {
        Ok(Decision::Run(permit) | Decision::Unprotected(permit)) => {
            let context = RunContext { layer: layer.clone(), rules, caller, permit };
            return start(context, service, parts, whole);
        }
        Ok(Decision::Replay(replay)) => match answered(inner, &replay) {
            Ok(response) => return Verdict::Answer(Ok(response)),
            Err(problem) => (problem, "replay"),
        },
        Ok(Decision::Busy(busy)) => (in_flight(&busy), "busy"),
        Ok(Decision::Mismatch(_)) => (mismatch(), "mismatch"),
        Ok(Decision::Held(_)) => (held(), "held"),
        Err(error) => (store_unavailable(&error), "refused"),
    };
    refuse(problem, Some(id), Some(decision))
}

/// Starts a run: from here on, nothing of it is cancelled.
fn start<S, B, R>(
    context: RunContext,
    service: S,
    mut parts: request::Parts,
    whole: Whole,
) -> Verdict<R, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
{
    let version = parts.version;
    parts.extensions.insert::<Permit>(context.permit.clone());
    let request = Request::from_parts(parts, RequestBody::whole(whole));
    let told = context.clone();
    let future = Box::pin(run(context, service, request, version));
    Verdict::Run(Run::new(future, move || Ok(panicked(&told, version))))
}

async fn whole<B: Body<Data = Bytes>>(inner: &Inner, rules: &Rules, body: B) -> Result<Whole, Problem> {
    if body.is_end_stream() {
        return Ok(Whole::default());
    }
    let body = pin!(body);
    let reading = read(body, rules.request_bytes_max, inner.shared.budget.share());
    let Ok(read) = timeout(inner.settings.body_timeout, reading).await else { return Err(body_incomplete()) };
    match read {
        Read::Whole(whole) => Ok(whole),
        Read::TooLong(_) => Err(Problem::new(
            Code::BodyTooLarge,
            format!("With a key, a body may have at most {} bytes. Nothing ran.", rules.request_bytes_max),
        )
        .closing()),
        Read::NoRoom(_) => Err(overloaded().closing()),
        Read::Broken(_) => Err(body_incomplete()),
    }
}

fn body_incomplete() -> Problem {
    let detail = "The body broke off or did not come in time. Nothing ran; send it again.";
    Problem::new(Code::BodyIncomplete, detail).closing()
}

/// Reads the rest of a request that is refused, so that its connection can be used on; or says that it cannot.
async fn drained<B: Body<Data = Bytes>>(body: B, bytes_max: usize, problem: Problem) -> Problem {
    if body.is_end_stream() {
        return problem;
    }
    let mut body = pin!(body);
    let mut left = bytes_max;
    let all = timeout(DRAIN, async {
        while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
            let length = frame.ok()?.data_ref().map_or(0, Bytes::len);
            left = left.checked_sub(length)?;
        }
        Some(())
    });
    match all.await {
        Ok(Some(())) => problem,
        Ok(None) | Err(_) => problem.closing(),
    }
}

fn claim(rules: &Rules, key: &Key, print: Fingerprint, parts: &request::Parts) -> Claim {
    let claim = Claim::new(key)
        .fingerprint(print)
        .label(&label(parts))
        .lease(rules.lease)
        .retention(rules.retention)
        .lapse(rules.lapse)
        .on_outage(rules.on_outage);
    let claim = match rules.attempts_max {
        Some(attempts) => claim.attempts_max(attempts),
        None => claim,
    };
    match rules.while_running {
        WhileRunning::Reject => claim,
        WhileRunning::Wait(span) => claim.wait_up_to(span),
    }
}

/// Claims, and gives up on a store that does not answer in time.
async fn claimed(inner: &Inner, rules: &Rules, claim: Claim) -> semel::Result<Decision> {
    let patience = match rules.while_running {
        WhileRunning::Reject => inner.settings.store_timeout,
        WhileRunning::Wait(span) => inner.settings.store_timeout.saturating_add(span),
    };
    let asked = claim.clone();
    if let Ok(decision) = timeout(patience, inner.semel.claim(asked)).await {
        return decision;
    }
    let error = Error::new(ErrorKind::Unavailable, "the store did not answer in time; ask again");
    match rules.on_outage {
        OnOutage::Closed => Err(error),
        OnOutage::Open => Ok(Decision::Unprotected(inner.semel.unprotected(&claim, &error))),
    }
}

/// Whether a caller is over its quota, and asks for something new. What is there already may always be asked for again.
async fn over_quota(inner: &Inner, caller: &Caller, key: &Key) -> Option<Problem> {
    let quotas = inner.settings.quotas.as_ref()?;
    let retry_after = inner.shared.usage.is_over(caller, quotas, Instant::now())?;
    match timeout(inner.settings.store_timeout, inner.semel.get(key)).await {
        Ok(Ok(Some(_))) => None,
        Ok(Ok(None) | Err(_)) | Err(_) => Some(
            Problem::new(Code::QuotaExceeded, "Too much was asked for with new keys. Nothing ran.")
                .retry_after(retry_after),
        ),
    }
}

fn answered<R>(inner: &Inner, replay: &Replay) -> Result<Response<ResponseBody<R>>, Problem> {
    let response = replayed(replay, &inner.settings.profile.names, inner.shared.budget.share());
    response.map_err(Unanswerable::problem)
}
