//! A run: the service is called once, and what it answered is settled before the client sees it.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode, Version, response};
use http_body::Body;
use semel::{Error, ErrorKind, OnOutage, Outcome, Permit};
use tokio::time::{Instant, sleep, timeout};
use tower_service::Service;

use crate::body::{Read, RequestBody, ResponseBody, Whole, read};
use crate::budget::Reserved;
use crate::caller::Caller;
use crate::decided::Decided;
use crate::future::Answer;
use crate::layer::IdempotencyLayer;
use crate::problem::{Code, Problem};
use crate::profile::{OnServerError, Rules};
use crate::refusal::{add_lease_left, outcome_unknown};
use crate::replay::tell_until;
use crate::reply::outcome;
use crate::settle::Settle;

/// How long to wait before a complete that failed is tried again, at first.
const AGAIN_FIRST: Duration = Duration::from_millis(20);
/// And at most.
const AGAIN_LAST: Duration = Duration::from_millis(500);

/// What a run stands on.
#[derive(Clone)]
pub(crate) struct RunContext {
    pub(crate) layer: IdempotencyLayer,
    pub(crate) rules: Arc<Rules>,
    pub(crate) caller: Caller,
    pub(crate) permit: Permit,
    /// When its key was counted against the caller's quotas, if it was.
    counted_at: Option<Instant>,
}

/// Calls the service and settles what came of it. The lease is renewed while that takes long.
pub(crate) async fn run<S, B, R>(
    context: RunContext,
    service: S,
    request: Request<RequestBody<B>>,
    version: Version,
    room: Reserved,
) -> Answer<R, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    R: Body<Data = Bytes>,
{
    let _counted = context.layer.inner.shared.count_run();
    let mut work = pin!(work(&context, service, request, version, room));
    // Most runs end long before the first renewal is due, and need no heartbeat.
    if let Ok(answer) = timeout(context.permit.lease().div_f64(3.0), &mut work).await {
        return answer;
    }
    let _heartbeat = context.permit.heartbeat();
    work.await
}

async fn work<S, B, R>(
    context: &RunContext,
    mut service: S,
    request: Request<RequestBody<B>>,
    version: Version,
    room: Reserved,
) -> Answer<R, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    R: Body<Data = Bytes>,
{
    // An error of the service itself says nothing about its effect: the lease decides.
    let response = match service.call(request).await {
        Ok(response) => response,
        Err(error) => {
            context.note_unknown().await;
            return Err(error);
        }
    };
    let (mut parts, body) = response.into_parts();
    Ok(match context.fate(&parts) {
        Settle::Keep => context.keep(parts, body, version, room).await,
        Settle::Completed => context.completed(parts, body, version).await,
        Settle::Release => {
            context.release(&parts).await;
            context.passed(parts, body)
        }
        Settle::Hold => {
            let reason = format!("answered {}", parts.status.as_u16());
            context.told(context.in_time(context.permit.hold(&reason)).await.map(drop));
            context.passed(parts, body)
        }
        Settle::Unknown => {
            context.note_unknown().await;
            add_lease_left(&mut parts, context.permit.lease_left());
            context.passed(parts, body)
        }
    })
}

impl RunContext {
    /// A run that was granted. Its key counts against the caller's quotas from here on.
    pub(crate) fn new(layer: IdempotencyLayer, rules: Arc<Rules>, caller: Caller, permit: Permit) -> Self {
        let mut context = Self { layer, rules, caller, permit, counted_at: None };
        context.count_key();
        context
    }

    /// What becomes of a response: what its handler says, or else what the rules say of its status.
    fn fate(&self, parts: &response::Parts) -> Settle {
        if let Some(said) = parts.extensions.get::<Settle>() {
            return *said;
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

    /// Completes with the response, if it is of a kind and a size that is kept; otherwise with the fact that there
    /// was one. Only then does the client see it.
    async fn keep<R>(
        &self,
        parts: response::Parts,
        body: R,
        version: Version,
        mut reserved: Reserved,
    ) -> Response<ResponseBody<R>>
    where
        R: Body<Data = Bytes>,
    {
        let bytes_max = self.rules.response_bytes_max;
        let size = body.size_hint();
        if streams(&parts) || size.lower() > bytes_max as u64 {
            return self.keep_without_body(parts, ResponseBody::streaming(body), version).await;
        }
        // A body of a known size never has to be moved on half read, and can stay where it is.
        if let Some(exact) = size.exact() {
            let exact = usize::try_from(exact).unwrap_or(usize::MAX);
            if reserved.take_in_time(exact).await.is_err() {
                return self.keep_without_body(parts, ResponseBody::streaming(body), version).await;
            }
            let body = pin!(body);
            return match read(body, bytes_max, Reserved::default()).await {
                Read::Whole(whole) => self.keep_whole(parts, Whole { reserved, ..whole }, version).await,
                Read::TooLong(_) | Read::NoRoom(..) | Read::Broken(_) => self.broke_off(version).await,
            };
        }
        let mut body: Pin<Box<R>> = Box::pin(body);
        match read(body.as_mut(), bytes_max, reserved).await {
            Read::Whole(whole) => self.keep_whole(parts, whole, version).await,
            // It ran: what cannot be kept is passed on, and known to have been there.
            Read::TooLong(first) | Read::NoRoom(_, first) => {
                self.keep_without_body(parts, ResponseBody::continued(first, body), version).await
            }
            Read::Broken(_) => self.broke_off(version).await,
        }
    }

    async fn keep_whole<R>(
        &self,
        parts: response::Parts,
        whole: Whole,
        version: Version,
    ) -> Response<ResponseBody<R>> {
        let allowed = self.rules.headers_kept.as_deref();
        let outcome =
            outcome(parts.status, &parts.headers, whole.trailers.as_ref(), Some(&whole.bytes), allowed);
        self.complete(outcome, parts, ResponseBody::whole(whole), version).await
    }

    async fn keep_without_body<R>(
        &self,
        parts: response::Parts,
        body: ResponseBody<R>,
        version: Version,
    ) -> Response<ResponseBody<R>> {
        let outcome = outcome(parts.status, &parts.headers, None, None, None);
        self.complete(outcome, parts, body, version).await
    }

    async fn complete<R>(
        &self,
        outcome: Outcome,
        parts: response::Parts,
        body: ResponseBody<R>,
        version: Version,
    ) -> Response<ResponseBody<R>> {
        let bytes = outcome.bytes().len() as u64;
        match self.complete_in_time(outcome).await {
            Ok(()) => {
                self.count_bytes(bytes);
                self.answered(parts, body)
            }
            Err(error) if error.kind() != ErrorKind::Lost && self.rules.on_outage == OnOutage::Open => {
                tracing::warn!(key = %self.permit.key().id().short(), %error, "semel: answered, but not kept");
                let mut response = self.answered(parts, body);
                self.say_unprotected(&mut response);
                response
            }
            Err(error) => {
                tracing::error!(key = %self.permit.key().id().short(), %error, "semel: ran, but the outcome is not kept");
                // The store has not answered for a while: the client does not wait for it once more.
                self.note_unknown_later();
                self.unknown(version, "The request ran, but its outcome could not be kept.")
            }
        }
    }

    /// Completes; tries again for a while if the store does not answer, as the handler cannot run again.
    async fn complete_in_time(&self, outcome: Outcome) -> semel::Result<()> {
        let tries = async {
            let mut pause = AGAIN_FIRST;
            loop {
                match self.permit.complete(outcome.clone()).await {
                    Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown) => {
                        tracing::debug!(%error, "semel: completing again");
                        sleep(pause).await;
                        pause = pause.saturating_mul(2).min(AGAIN_LAST);
                    }
                    told => return told,
                }
            }
        };
        self.in_time(tries).await
    }

    /// What the store says within the time that it has. What is in flight to it goes on.
    async fn in_time<T>(&self, asked: impl Future<Output = semel::Result<T>>) -> semel::Result<T> {
        let told = timeout(self.layer.inner.settings.store_timeout, asked).await;
        told.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Unknown, "the store did not answer in time; the lease decides"))
        })
    }

    /// The handler says that it completed the permit itself. That is looked up: nobody sees a response before it
    /// is durable.
    async fn completed<R>(
        &self,
        parts: response::Parts,
        body: R,
        version: Version,
    ) -> Response<ResponseBody<R>> {
        if self.permit.is_unprotected() {
            return self.answered(parts, ResponseBody::streaming(body));
        }
        match self.in_time(self.layer.inner.semel.get(self.permit.key())).await {
            Ok(Some(record)) if record.outcome().is_some() => {
                let until = record.live_until();
                let mut response = self.answered(parts, ResponseBody::streaming(body));
                tell_until(response.headers_mut(), &self.layer.inner.settings.profile.names, until);
                response
            }
            Ok(_) => {
                self.note_unknown().await;
                self.unknown(version, "The handler did not complete what it said it had.")
            }
            Err(error) => {
                self.told(Err(error));
                self.note_unknown_later();
                self.unknown(version, "The request ran, but its outcome could not be looked up.")
            }
        }
    }

    /// The service's response, with the headers that say how it was kept.
    fn answered<R>(&self, parts: response::Parts, body: ResponseBody<R>) -> Response<ResponseBody<R>> {
        let mut response = Response::from_parts(parts, body);
        let names = &self.layer.inner.settings.profile.names;
        tell_until(response.headers_mut(), names, self.permit.remembered_until());
        self.decided(&mut response, None);
        response
    }

    /// The service's response as it came: nothing was kept of it.
    fn passed<R>(&self, parts: response::Parts, body: R) -> Response<ResponseBody<R>> {
        let mut response = Response::from_parts(parts, ResponseBody::streaming(body));
        self.decided(&mut response, None);
        response
    }

    async fn broke_off<R>(&self, version: Version) -> Response<ResponseBody<R>> {
        self.note_unknown().await;
        self.unknown(version, "The request ran, but its response broke off.")
    }

    fn unknown<R>(&self, version: Version, why: &str) -> Response<ResponseBody<R>> {
        self.problem(outcome_unknown(why, self.permit.lease_left()), version)
    }

    /// Notes in the running record that its outcome is unknown, for the retries that come before the lease ends.
    async fn note_unknown(&self) {
        self.told(self.in_time(self.permit.report_unknown()).await);
    }

    /// The same in the background.
    fn note_unknown_later(&self) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let context = self.clone();
            runtime.spawn(async move { context.note_unknown().await });
        }
    }

    /// Releases the key, because of a response that is not kept. A failed run may have left effects, and where attempts
    /// are limited each counts; of any other there is nothing to remember.
    async fn release(&self, parts: &response::Parts) {
        let reason = format!("answered {}", parts.status.as_u16());
        let failed = parts.status.is_server_error() && parts.extensions.get::<Settle>().is_none();
        if failed || self.rules.attempts_max.is_some() {
            self.told(self.in_time(self.permit.release(&reason)).await.map(drop));
        } else {
            self.uncount_record();
            self.told(self.in_time(self.permit.give_back(&reason)).await.map(drop));
        }
    }

    fn problem<R>(&self, problem: Problem, version: Version) -> Response<ResponseBody<R>> {
        let code = problem.code();
        let mut response = problem.response(&self.layer.inner.settings.profile, version);
        self.decided(&mut response, Some(code));
        response
    }

    fn decided<R>(&self, response: &mut Response<ResponseBody<R>>, code: Option<Code>) {
        let is_unprotected = self.permit.is_unprotected();
        let decision = if is_unprotected { "unprotected" } else { "run" };
        let decided = Decided { decision, code, key: Some(self.permit.key().id()) };
        response.extensions_mut().insert(decided);
        if is_unprotected {
            self.say_unprotected(response);
        }
    }

    fn say_unprotected<R>(&self, response: &mut Response<ResponseBody<R>>) {
        let name = self.layer.inner.settings.profile.names.protected.clone();
        response.headers_mut().insert(name, HeaderValue::from_static("false"));
    }

    fn told(&self, told: semel::Result<()>) {
        if let Err(error) = told {
            tracing::warn!(key = %self.permit.key().id().short(), %error, "semel: not settled; the lease decides");
        }
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

/// Whether a response goes on for as long as its client listens.
fn streams(parts: &response::Parts) -> bool {
    let media_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_event_stream = media_type
        .and_then(|text| text.split(';').next())
        .is_some_and(|text| text.trim().eq_ignore_ascii_case("text/event-stream"));
    is_event_stream || parts.status == StatusCode::SWITCHING_PROTOCOLS
}

/// What the client of a handler that panicked is told. Whether its effect landed, nobody knows: the lease decides.
pub(crate) fn panicked<R>(context: &RunContext, version: Version) -> Response<ResponseBody<R>> {
    tracing::error!(key = %context.permit.key().id().short(), "semel: the handler panicked; the lease decides");
    // Not a gateway's 504: there is no gateway.
    context.note_unknown_later();
    let problem = outcome_unknown("The handler failed without an answer.", context.permit.lease_left());
    context.problem(problem.status(StatusCode::INTERNAL_SERVER_ERROR), version)
}
