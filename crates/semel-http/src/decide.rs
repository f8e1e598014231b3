//! From a covered request to a decision: its key, its caller, its body, its fingerprint, and the claim.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, request};
use http_body::Body;
use semel::record::LABEL_BYTES_MAX;
use semel::{Claim, Decision, Error, ErrorKind, Key, OnOutage, Permit, RecordId, Replay};
use tokio::time::{Instant, timeout};
use tower_service::Service;

use crate::body::{Read, RequestBody, ResponseBody, Whole, read};
use crate::decided::Decided;
use crate::fingerprint::fingerprint;
use crate::future::{Run, Verdict};
use crate::header::key_of;
use crate::layer::{IdempotencyLayer, Inner};
use crate::principal::Caller;
use crate::problem::{Code, Problem};
use crate::profile::{Presence, Reach, Rules, WhileRunning};
use crate::refusal::{held, in_flight, mismatch, overloaded, store_unavailable};
use crate::replay::{Unanswerable, replayed};
use crate::run::{Ground, panicked, run};

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
    let (key, caller) = match whose(inner, &rules, &parts) {
        Ok(whose) => whose,
        Err(problem) => return refuse(drained(body, rules.request_bytes_max, problem).await, None, None),
    };
    let id = key.id();
    let whole = match whole(inner, &rules, body).await {
        Ok(whole) => whole,
        Err(problem) => return refuse(problem, Some(id), None),
    };
    let claim = claim(&rules, &key, &parts, &whole);
    if let Some(problem) = over_quota(inner, &caller, &key).await {
        return refuse(problem, Some(id), None);
    }
    let (problem, decision) = match claimed(inner, &rules, claim).await {
        Ok(Decision::Run(permit) | Decision::Unprotected(permit)) => {
            let ground = Ground { layer: layer.clone(), rules, caller, permit };
            return start(ground, service, parts, whole);
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
fn start<S, B, R>(ground: Ground, service: S, mut parts: request::Parts, whole: Whole) -> Verdict<R, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
{
    let version = parts.version;
    parts.extensions.insert::<Permit>(ground.permit.clone());
    let request = Request::from_parts(parts, RequestBody::whole(whole));
    let told = ground.clone();
    let future = Box::pin(run(ground, service, request, version));
    Verdict::Run(Run::new(future, move || Ok(panicked(&told, version))))
}

/// Whose key it is, and which.
fn whose(inner: &Inner, rules: &Rules, parts: &request::Parts) -> Result<(Key, Caller), Problem> {
    let profile = &inner.settings.profile;
    let name = match key_of(&parts.headers, &profile.names, profile.key) {
        Ok(Some(name)) => name,
        Ok(None) if rules.presence == Presence::Required => {
            let detail =
                format!("This operation wants a key of the client's own in `{}`.", profile.names.key);
            return Err(Problem::new(Code::KeyMissing, detail));
        }
        Ok(None) => return Err(Problem::new(Code::KeyMalformed, "The key's header has no value.")),
        Err(malformed) => return Err(Problem::new(Code::KeyMalformed, malformed.to_string())),
    };
    let caller = inner.principal.caller(parts).ok_or_else(|| {
        Problem::new(Code::CallerUnknown, "A key belongs to a caller: say who you are, then send it again.")
    })?;
    let scope = inner.settings.scope.iter().map(String::as_str).chain([caller.as_str()]);
    let key = match rules.reach {
        Reach::Caller => Key::scoped(scope, "http", &name),
        Reach::Route => Key::scoped(scope, &operation(parts), &name),
    };
    key.map(|key| (key, caller.clone())).map_err(|error| Problem::new(Code::KeyMalformed, error.to_string()))
}

/// Method, path and query as an operation; digested if they are longer than an operation may be.
fn operation(parts: &request::Parts) -> String {
    let target = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let operation = format!("{} {target}", parts.method);
    if operation.len() <= semel::PART_BYTES_MAX {
        return operation;
    }
    let digest = semel::Fingerprint::of_parts([operation.as_bytes()]);
    format!("{} digest:{}", parts.method, RecordId::from_bytes(*digest.as_bytes()))
}

async fn whole<B: Body<Data = Bytes>>(inner: &Inner, rules: &Rules, body: B) -> Result<Whole, Problem> {
    if body.is_end_stream() {
        return Ok(Whole::default());
    }
    let body = pin!(body);
    let reading = read(body, rules.request_bytes_max, inner.lasting.room.share());
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

fn claim(rules: &Rules, key: &Key, parts: &request::Parts, whole: &Whole) -> Claim {
    let print = fingerprint(&parts.method, &parts.uri, &parts.headers, &whole.bytes, &rules.fields_left_out);
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

/// Method and path, in words for people, cut to what a label may have. Without the query, which may hold secrets.
fn label(parts: &request::Parts) -> String {
    let mut label = format!("{} {}", parts.method, parts.uri.path());
    label.truncate(label.floor_char_boundary(LABEL_BYTES_MAX));
    label
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
    let retry_after = inner.lasting.usage.is_over(caller, quotas, Instant::now())?;
    match timeout(inner.settings.store_timeout, inner.semel.get(key)).await {
        Ok(Ok(Some(_))) => None,
        Ok(Ok(None) | Err(_)) | Err(_) => Some(
            Problem::new(Code::QuotaExceeded, "Too much was asked for with new keys. Nothing ran.")
                .retry_after(retry_after),
        ),
    }
}

fn answered<R>(inner: &Inner, replay: &Replay) -> Result<Response<ResponseBody<R>>, Problem> {
    let response = replayed(replay, &inner.settings.profile.names, inner.lasting.room.share());
    response.map_err(Unanswerable::problem)
}
