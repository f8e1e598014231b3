//! A run: the service is called once, and what it answered is settled before the client sees it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode, Version, response};
use http_body::Body;
use semel::record::Record;
use semel::{Error, ErrorKind, Heartbeat, OnOutage, Outcome, Permit};
use tokio::time::{Instant, timeout_at};
use tower_service::Service;
use tracing::Instrument as _;

use super::deadline::{Deadline, Elapsed, after};
use super::future::Answer;
use crate::body::{Read, RequestBody, ResponseBody, Whole, read};
use crate::budget::Reserved;
use crate::caller::Caller;
use crate::decided::{Decided, DecisionKind};
use crate::layer::{IdempotencyLayer, Running};
use crate::observer::RequestObserver;
use crate::problem::{Code, Problem};
use crate::profile::{OnServerError, Rules};
use crate::refusal::{add_lease_left, outcome_unknown};
use crate::settle::Settle;
use crate::stored_response::{insert_expiry, is_interim, outcome};

/// How long to wait before a complete that failed is tried again, at first.
const AGAIN_FIRST: Duration = Duration::from_millis(20);
/// And at most.
const AGAIN_LAST: Duration = Duration::from_millis(500);

/// A request that may run, and everything that its run needs.
pub(crate) struct Grant<S, B> {
    pub(crate) layer: IdempotencyLayer,
    pub(crate) rules: Arc<Rules>,
    pub(crate) caller: Caller,
    pub(crate) permit: Permit,
    pub(crate) deadline: Deadline,
    /// For the response.
    pub(crate) room: Reserved,
    pub(crate) service: S,
    pub(crate) request: Request<RequestBody<B>>,
}

/// What is known of a run outside of its future: for a handler that panics, and for a client that leaves.
#[derive(Clone)]
pub(crate) struct RunContext {
    layer: IdempotencyLayer,
    permit: Permit,
    version: Version,
    observer: Option<RequestObserver>,
}

/// A run and its context; or the answer to one that panicked at once.
pub(crate) type Started<W, R> = Result<(W, RunContext), Box<Response<ResponseBody<R>>>>;

/// Starts the run of a grant: from here on, nothing of it is cancelled.
pub(crate) fn start<S, B, R>(grant: Grant<S, B>) -> Started<impl Future<Output = Answer<R, S::Error>>, R>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    R: Body<Data = Bytes>,
{
    let Grant { layer, rules, caller, permit, deadline, room, mut service, request } = grant;
    let counted = layer.inner.shared.count_run();
    let version = request.version();
    let observer = request.extensions().get().cloned();
    let context = RunContext { layer: layer.clone(), permit: permit.clone(), version, observer };
    let lease = KeptLease::new(deadline, &permit);
    let mut run =
        Run { layer, rules, caller, permit, version, lease, room, counted_at: None, _counted: counted };
    run.count_key();
    // Called here and not in the future of the run, which would have to hold the request and the service, too.
    match catch_unwind(AssertUnwindSafe(|| service.call(request))) {
        Ok(calling) => Ok((settled(run, calling), context)),
        Err(_) => Err(Box::new(context.panicked())),
    }
}

/// Waits for the service, and settles its response.
///
/// Every request pays for the size of this future, so it is flat: the response is in it once.
#[expect(clippy::manual_async_fn, reason = "an `async fn` would hold its arguments twice")]
fn settled<F, R, E>(mut run: Run, calling: F) -> impl Future<Output = Answer<R, E>>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body<Data = Bytes>,
{
    async move {
        let response = match run.lease.keep(&run.permit, pin!(calling)).await {
            Ok(response) => response,
            // An error of the service itself says nothing about its effect: the lease decides.
            Err(error) => {
                run.note_unknown().await;
                return Err(error);
            }
        };
        let (mut parts, body) = response.into_parts();
        Ok(match run.settle(&parts) {
            Settle::Keep if is_interim(parts.status) => {
                run.note_unknown().await;
                run.cannot_be_final(parts.status)
            }
            Settle::Keep => {
                let Some((outcome, body)) = run.outcome_of(&parts, body).await else {
                    run.note_unknown().await;
                    return Ok(run.unknown("The request ran, but its response broke off."));
                };
                if run.is_refused_behind(&parts, &body) {
                    run.release(&parts).await;
                    return Ok(run.passed(parts, body));
                }
                let bytes = outcome.bytes().len() as u64;
                let completed = run.complete_in_time(outcome).await;
                run.kept(completed, bytes, parts, body)
            }
            Settle::Completed => {
                let found = run.look_up().await;
                if matches!(&found, Ok(found) if found.as_ref().is_none_or(|found| found.outcome().is_none()))
                {
                    run.note_unknown().await;
                }
                run.completed(found, parts, body)
            }
            Settle::Release => {
                run.release(&parts).await;
                run.passed(parts, ResponseBody::streaming(body))
            }
            Settle::Hold => {
                run.hold(parts.status).await;
                run.passed(parts, ResponseBody::streaming(body))
            }
            Settle::Unknown => {
                run.note_unknown().await;
                add_lease_left(&mut parts, run.permit.lease_left());
                run.passed(parts, ResponseBody::streaming(body))
            }
        })
    }
}

/// A run that was granted.
struct Run {
    layer: IdempotencyLayer,
    rules: Arc<Rules>,
    caller: Caller,
    permit: Permit,
    version: Version,
    lease: KeptLease,
    /// For the response.
    room: Reserved,
    /// When its key was counted against the caller's quotas, if it was.
    counted_at: Option<Instant>,
    _counted: Running,
}

/// Keeps the lease of a run while it is waited for. Most runs end before a third of it, when the first renewal is due,
/// and need no heartbeat.
struct KeptLease {
    deadline: Deadline,
    renew_at: Instant,
    heartbeat: Option<Heartbeat>,
}

impl KeptLease {
    fn new(deadline: Deadline, permit: &Permit) -> Self {
        Self { deadline, renew_at: after(permit.lease().div_f64(3.0)), heartbeat: None }
    }

    /// Waits for `work` for as long as it takes.
    async fn keep<T>(&mut self, permit: &Permit, mut work: Pin<&mut impl Future<Output = T>>) -> T {
        if let Ok(output) = self.until_renewal(permit, work.as_mut()).await {
            return output;
        }
        work.await
    }

    /// Waits for `work` until this moment.
    async fn keep_until<T>(
        &mut self,
        permit: &Permit,
        until: Instant,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Elapsed> {
        if self.renew_at < until
            && let Ok(output) = self.until_renewal(permit, work.as_mut()).await
        {
            return Ok(output);
        }
        self.deadline.limit(until, work).await
    }

    /// Waits for `work` until the first renewal is due, and starts the heartbeat then.
    async fn until_renewal<T>(
        &mut self,
        permit: &Permit,
        work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Elapsed> {
        if self.heartbeat.is_some() {
            return Err(Elapsed);
        }
        let waited = self.deadline.limit(self.renew_at, work).await;
        if waited.is_err() {
            self.heartbeat = Some(permit.heartbeat());
        }
        waited
    }
}

impl Run {
    /// What becomes of a response: what its handler says, or else what the rules say of its status.
    fn settle(&self, parts: &response::Parts) -> Settle {
        if let Some(said) = parts.extensions.get::<Settle>() {
            return *said;
        }
        // A refusal of another layer inside of this one: it says what ran, and is no answer of the service.
        if let Some(Decided { code: Some(code), .. }) = parts.extensions.get() {
            return if *code == Code::OutcomeUnknown { Settle::Unknown } else { Settle::Release };
        }
        if parts.status.is_server_error() {
            return match self.rules.on_server_error {
                OnServerError::Release => Settle::Release,
                OnServerError::Store => Settle::Keep,
                OnServerError::Hold => Settle::Hold,
            };
        }
        if self.rules.statuses_not_kept.contains(&parts.status) { Settle::Release } else { Settle::Keep }
    }

    /// Whether a layer or proxy of semel behind this one refused the request: that is no answer of the service, and kept as one it
    /// would answer every retry with what was so for a moment.
    fn is_refused_behind<R>(&self, parts: &response::Parts, body: &ResponseBody<R>) -> bool {
        let profile = &self.layer.inner.settings.profile;
        parts.status.is_client_error()
            && body
                .whole_bytes()
                .and_then(|bytes| Code::of_response(profile, &parts.headers, bytes))
                .is_some()
    }

    /// The outcome of a response: all of it, if it is of a kind and a size that is kept; otherwise the fact that there
    /// was one. `None` if it broke off.
    async fn outcome_of<R>(&mut self, parts: &response::Parts, body: R) -> Option<(Outcome, ResponseBody<R>)>
    where
        R: Body<Data = Bytes>,
    {
        let bytes_max = self.rules.response_bytes_max;
        let size = body.size_hint();
        if streams(parts) || size.lower() > bytes_max as u64 {
            return Some((without_body(parts), ResponseBody::streaming(body)));
        }
        let mut reserved = std::mem::take(&mut self.room);
        // A body of a known size never has to be moved on half read, and can stay where it is.
        if let Some(exact) = size.exact() {
            let exact = usize::try_from(exact).unwrap_or(usize::MAX);
            let taken = self.lease.keep(&self.permit, pin!(reserved.take_in_time(exact))).await;
            if taken.is_err() {
                return Some((without_body(parts), ResponseBody::streaming(body)));
            }
            let body = pin!(body);
            let reading = pin!(read(body, bytes_max, Reserved::default()));
            return match self.lease.keep(&self.permit, reading).await {
                Read::Whole(whole) => Some(self.with_body(parts, Whole { reserved, ..whole })),
                Read::TooLong(_) | Read::NoRoom(..) | Read::Broken(_) => None,
            };
        }
        let mut body: Pin<Box<R>> = Box::pin(body);
        let reading = self.lease.keep(&self.permit, pin!(read(body.as_mut(), bytes_max, reserved))).await;
        match reading {
            Read::Whole(whole) => Some(self.with_body(parts, whole)),
            // It ran: what cannot be kept is passed on, and known to have been there.
            Read::TooLong(first) | Read::NoRoom(_, first) => {
                Some((without_body(parts), ResponseBody::continued(first, body)))
            }
            Read::Broken(_) => None,
        }
    }

    fn with_body<R>(&self, parts: &response::Parts, whole: Whole) -> (Outcome, ResponseBody<R>) {
        let allowed = self.rules.headers_kept.as_deref();
        let outcome =
            outcome(parts.status, &parts.headers, whole.trailers.as_ref(), Some(&whole.bytes), allowed);
        (outcome, ResponseBody::whole(whole))
    }

    /// What the client sees of a response: only what is durable, unless the policy is open.
    fn kept<R>(
        &self,
        completed: semel::Result<()>,
        bytes: u64,
        parts: response::Parts,
        body: ResponseBody<R>,
    ) -> Response<ResponseBody<R>> {
        match completed {
            Ok(()) => {
                self.count_bytes(bytes);
                self.answered(parts, body)
            }
            Err(error) if error.kind() != ErrorKind::Lost && self.rules.on_outage == OnOutage::Open => {
                tracing::warn!(key = %self.permit.key().id().short(), %error, "semel: answered, but not kept");
                let mut response = self.answered(parts, body);
                self.mark_unprotected(&mut response);
                response
            }
            Err(error) => {
                tracing::error!(key = %self.permit.key().id().short(), %error, "semel: ran, but the outcome is not kept");
                // The store has not answered for a while: the client does not wait for it once more.
                note_unknown_later(&self.layer, &self.permit);
                self.unknown("The request ran, but its outcome could not be kept.")
            }
        }
    }

    /// Completes; tries again for a while if the store does not answer, as the handler cannot run again.
    async fn complete_in_time(&mut self, outcome: Outcome) -> semel::Result<()> {
        let until = self.store_answers_until();
        let mut pause = AGAIN_FIRST;
        loop {
            let completing = pin!(self.permit.complete(outcome.clone()));
            match self.lease.keep_until(&self.permit, until, completing).await {
                Ok(Err(error)) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown) => {
                    tracing::debug!(%error, "semel: completing again");
                }
                Ok(completed) => return completed,
                Err(Elapsed) => return Err(too_slow()),
            }
            if Instant::now() >= until {
                return Err(too_slow());
            }
            self.lease.deadline.wait_until(after(pause).min(until)).await;
            pause = pause.saturating_mul(2).min(AGAIN_LAST);
        }
    }

    /// Releases the key, because of a response that is not kept: a retry runs again. A failed run may have left effects, and
    /// where attempts are limited each counts; of any other there is nothing to remember.
    async fn release(&mut self, parts: &response::Parts) {
        let until = self.store_answers_until();
        let reason = format!("answered {}", parts.status.as_u16());
        let failed = parts.status.is_server_error() && parts.extensions.get::<Settle>().is_none();
        let is_remembered = failed || self.rules.attempts_max.is_some();
        if !is_remembered {
            self.uncount_record();
        }
        let releasing = pin!(async {
            if is_remembered {
                self.permit.release(&reason).await.map(drop)
            } else {
                self.permit.give_back(&reason).await.map(drop)
            }
        });
        let released = self.lease.keep_until(&self.permit, until, releasing).await;
        self.log_unsettled(released);
    }

    /// Notes in the running record that its outcome is unknown, for the retries that come before the lease ends.
    async fn note_unknown(&mut self) {
        let until = self.store_answers_until();
        let noting = pin!(self.permit.report_unknown());
        let noted = self.lease.keep_until(&self.permit, until, noting).await;
        self.log_unsettled(noted);
    }

    /// Holds the key: nothing runs again before a person or a probe decides.
    async fn hold(&mut self, status: StatusCode) {
        let until = self.store_answers_until();
        let reason = format!("answered {}", status.as_u16());
        let holding = pin!(self.permit.hold(&reason));
        let held = self.lease.keep_until(&self.permit, until, holding).await;
        self.log_unsettled(held.map(|answer| answer.map(drop)));
    }

    /// How long the store may take. What is in flight to it then goes on.
    fn store_answers_until(&self) -> Instant {
        after(self.layer.inner.settings.store_timeout)
    }

    /// The handler says that it completed the permit itself. That is looked up: no client sees a response before it is
    /// durable.
    async fn look_up(&mut self) -> semel::Result<Option<Record>> {
        let until = self.store_answers_until();
        let loading = pin!(self.layer.inner.semel.get(self.permit.key()));
        self.lease.keep_until(&self.permit, until, loading).await.unwrap_or_else(|_| Err(too_slow()))
    }

    fn completed<R>(
        &self,
        found: semel::Result<Option<Record>>,
        parts: response::Parts,
        body: R,
    ) -> Response<ResponseBody<R>> {
        if self.permit.is_unprotected() {
            return self.answered(parts, ResponseBody::streaming(body));
        }
        match found {
            Ok(Some(record)) if record.outcome().is_some() => {
                let until = record.live_until();
                let mut response = self.answered(parts, ResponseBody::streaming(body));
                insert_expiry(response.headers_mut(), &self.layer.inner.settings.profile.names, until);
                response
            }
            Ok(_) => self.unknown("The handler did not complete what it said it had."),
            Err(error) => {
                self.log_unsettled(Ok(Err(error)));
                note_unknown_later(&self.layer, &self.permit);
                self.unknown("The request ran, but its outcome could not be looked up.")
            }
        }
    }

    /// The service's response, with the headers that say how it was kept.
    fn answered<R>(&self, parts: response::Parts, body: ResponseBody<R>) -> Response<ResponseBody<R>> {
        let mut response = Response::from_parts(parts, body);
        let names = &self.layer.inner.settings.profile.names;
        insert_expiry(response.headers_mut(), names, self.permit.remembered_until());
        self.decided(&mut response, None);
        response
    }

    /// The service's response as it came: nothing was kept of it.
    fn passed<R>(&self, parts: response::Parts, body: ResponseBody<R>) -> Response<ResponseBody<R>> {
        let mut response = Response::from_parts(parts, body);
        self.decided(&mut response, None);
        response
    }

    /// A handler that ends its response with an interim status: no client can be sent that, now or later.
    fn cannot_be_final<R>(&self, status: StatusCode) -> Response<ResponseBody<R>> {
        let (key, status) = (self.permit.key().id(), status.as_u16());
        tracing::error!(key = %key.short(), status, "semel: the handler's status cannot end a response; the lease decides");
        let why = "The handler ended its response with a status that cannot end one.";
        let problem = outcome_unknown(why, self.permit.lease_left());
        self.problem(problem.status(StatusCode::INTERNAL_SERVER_ERROR))
    }

    fn unknown<R>(&self, why: &str) -> Response<ResponseBody<R>> {
        self.problem(outcome_unknown(why, self.permit.lease_left()))
    }

    fn problem<R>(&self, problem: Problem) -> Response<ResponseBody<R>> {
        let code = problem.code();
        let mut response = problem.response(&self.layer.inner.settings.profile, self.version);
        self.decided(&mut response, Some(code));
        response
    }

    fn decided<R>(&self, response: &mut Response<ResponseBody<R>>, code: Option<Code>) {
        let decision = decision(&self.permit);
        response.extensions_mut().insert(Decided { decision, code, key: Some(self.permit.key().id()) });
        if self.permit.is_unprotected() {
            self.mark_unprotected(response);
        }
    }

    fn mark_unprotected<R>(&self, response: &mut Response<ResponseBody<R>>) {
        let name = self.layer.inner.settings.profile.names.protected.clone();
        response.headers_mut().insert(name, HeaderValue::from_static("false"));
    }

    fn log_unsettled(&self, settled: Result<semel::Result<()>, Elapsed>) {
        log_unsettled(&self.permit, settled.unwrap_or_else(|_| Err(too_slow())));
    }

    /// Only the first attempt makes a record that was not there before.
    fn count_key(&mut self) {
        let inner = &self.layer.inner;
        if let (Some(quotas), 1) = (&inner.settings.quotas, self.permit.attempt()) {
            let (now, id) = (Instant::now(), self.permit.key().id());
            inner.shared.usage.count_key(&self.caller, id, quotas, self.rules.retention, now);
            self.counted_at = Some(now);
        }
    }

    /// What is given back is no record of the caller's any more; as a new key it still counts.
    fn uncount_record(&self) {
        if let (Some(counted_at), true) = (self.counted_at, self.permit.steps().is_empty()) {
            self.layer.inner.shared.usage.uncount_record(&self.caller, self.rules.retention, counted_at);
        }
    }

    fn count_bytes(&self, bytes: u64) {
        let inner = &self.layer.inner;
        if let Some(quotas) = &inner.settings.quotas {
            inner.shared.usage.count_bytes(&self.caller, quotas, self.rules.retention, bytes, Instant::now());
        }
    }
}

impl RunContext {
    /// Says that the run has ended whose client had left.
    pub(crate) fn ended_without_client<R, E>(&self, answer: &Answer<R, E>) {
        let answer = answer.as_ref().ok().map(|response| (response.status(), response.extensions()));
        let status = answer.map(|(status, _)| status.as_u16());
        let key = self.permit.key().id();
        tracing::info!(key = %key.short(), status, "semel: a run has ended whose client had left");
        if let Some(RequestObserver(observer)) = &self.observer {
            observer.ended_without_client(answer);
        }
    }

    /// The answer for a handler that panicked. It is unknown whether the effect landed: the lease decides.
    pub(crate) fn panicked<R>(&self) -> Response<ResponseBody<R>> {
        let key = self.permit.key().id();
        tracing::error!(key = %key.short(), "semel: the handler panicked; the lease decides");
        note_unknown_later(&self.layer, &self.permit);
        // Not a gateway's 504: there is no gateway.
        let problem = outcome_unknown("The handler failed without an answer.", self.permit.lease_left())
            .status(StatusCode::INTERNAL_SERVER_ERROR);
        let code = Some(problem.code());
        let mut response = problem.response(&self.layer.inner.settings.profile, self.version);
        response.extensions_mut().insert(Decided { decision: decision(&self.permit), code, key: Some(key) });
        response
    }
}

/// Notes in the background that the outcome of a run is unknown.
fn note_unknown_later(layer: &IdempotencyLayer, permit: &Permit) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let (permit, until) = (permit.clone(), after(layer.inner.settings.store_timeout));
    let noting = async move {
        let noted = timeout_at(until, permit.report_unknown()).await;
        log_unsettled(&permit, noted.unwrap_or_else(|_| Err(too_slow())));
    };
    runtime.spawn(noting.in_current_span());
}

fn log_unsettled(permit: &Permit, settled: semel::Result<()>) {
    if let Err(error) = settled {
        tracing::warn!(key = %permit.key().id().short(), %error, "semel: not settled; the lease decides");
    }
}

fn decision(permit: &Permit) -> DecisionKind {
    if permit.is_unprotected() { DecisionKind::Unprotected } else { DecisionKind::Run }
}

fn without_body(parts: &response::Parts) -> Outcome {
    outcome(parts.status, &parts.headers, None, None, None)
}

/// Whether a response goes on for as long as its client listens.
fn streams(parts: &response::Parts) -> bool {
    let media_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_event_stream = media_type
        .and_then(|text| text.split(';').next())
        .is_some_and(|text| text.trim().eq_ignore_ascii_case("text/event-stream"));
    is_event_stream || parts.status == StatusCode::SWITCHING_PROTOCOLS
}

fn too_slow() -> Error {
    Error::new(ErrorKind::Unknown, "the store did not answer in time; the lease decides")
}
