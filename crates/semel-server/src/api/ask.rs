//! What is asked, in a body or in a URL, both read strictly: by whom, and how many at once. Answers, written straight to bytes.

use std::fmt::Display;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Query as Pairs, Request};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use semel::RecordId;
use semel_http::request_id;
use serde::{Deserialize, Serialize};

use super::problem::{Code, Problem};
use super::wire::{Answers, Batch, OutcomeAs, WAIT_MAX};
use crate::access::{Authenticated, Caller, Need};
use crate::state::AppState;
use semel_ops::format::span;
use semel_ops::record_json::{Content, read_hex};

/// The largest body of a request.
pub(super) const BODY_BYTES_MAX: usize = 8 << 20;

/// A request of a worker: who asks, and what in the body.
pub(super) struct Ask {
    pub(super) served: Arc<AppState>,
    pub(super) asker: Authenticated,
    request_id: Option<Box<str>>,
    body: Json,
}

impl FromRequest<Arc<AppState>> for Ask {
    type Rejection = Problem;

    async fn from_request(request: Request, served: &Arc<AppState>) -> Result<Self, Problem> {
        let asker = Authenticated::of(served, request.headers())?;
        let request_id = request_id(request.headers()).map(Into::into);
        let body = Json::from_request(request, served).await?;
        Ok(Self { served: Arc::clone(served), asker, request_id, body })
    }
}

impl Ask {
    /// One ask, if the caller may.
    pub(super) fn one<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        admit(&self.asker, Need::Claim, 1)?;
        self.body.read()
    }

    /// The id that the client or a gateway gave the request.
    pub(super) fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// The asks of a batch, in the engine's words; each may be refused by itself.
    pub(super) fn many<'a, T: Deserialize<'a>, A>(
        &'a self,
        meant: impl Fn(T) -> Result<A, Problem>,
    ) -> Result<Vec<Result<A, Problem>>, Problem> {
        self.asker.need(Need::Claim)?;
        let items = self.body.read::<Batch<T>>()?.items()?;
        admit(&self.asker, Need::Claim, items.len())?;
        Ok(items.into_iter().map(meant).collect())
    }
}

/// The answers to a batch, in the order of its asks.
pub(super) async fn answers<A, T: Serialize, F: Future<Output = Result<T, Problem>>>(
    asks: Vec<Result<A, Problem>>,
    answer: impl Fn(A) -> F,
) -> Result<Answer, Problem> {
    let answers = each(asks.into_iter().map(async |ask| answer(ask?).await)).await;
    Answer::of(&Answers::of(answers.into_iter()))
}

/// A request of somebody who looks: who asks, and what in the URL.
pub(super) struct Look {
    pub(super) served: Arc<AppState>,
    pub(super) asker: Authenticated,
    pub(super) query: Query,
}

impl FromRequestParts<Arc<AppState>> for Look {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, served: &Arc<AppState>) -> Result<Self, Problem> {
        let asker = Authenticated::of(served, &parts.headers)?;
        let query = Query::from_request_parts(parts, served).await?;
        Ok(Self { served: Arc::clone(served), asker, query })
    }
}

/// Whether the role is enough, and so many asks are left of the quota.
pub(super) fn admit(asker: &Authenticated, need: Need, asks: usize) -> Result<(), Problem> {
    asker.need(need)?;
    asker.0.admit(asks as u64).map_err(Problem::quota_exceeded)
}

/// The body of a request, which says that it is JSON. What is in it is read later, without a copy.
pub(super) struct Json(Bytes);

impl Json {
    /// What the body says. Members that nobody knows are refused by name: a misspelt one must not be ignored.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        serde_json::from_slice(&self.0)
            .map_err(|error| Problem::invalid(format!("the body cannot be read: {error}")))
    }
}

impl<S: Sync> FromRequest<S> for Json {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        if !is_json(&parts.headers) {
            let detail = "the body must be JSON; say so with Content-Type: application/json";
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
        if announced_bytes(&parts.headers).is_some_and(|bytes| bytes > BODY_BYTES_MAX as u64) {
            return Err(too_large());
        }
        whole(body).await.map(Self)
    }
}

async fn whole(body: Body) -> Result<Bytes, Problem> {
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::invalid("the body ended before it was whole; send it again")),
    }
}

fn too_large() -> Problem {
    let detail = format!("the body is larger than {BODY_BYTES_MAX} bytes; send less at a time");
    Problem::new(Code::TooLarge, detail)
}

fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// `application/json`, with parameters or without.
fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(first), None) = (types.next(), types.next()) else { return false };
    let Ok(text) = first.to_str() else { return false };
    let essence = text.split_once(';').map_or(text, |(essence, _)| essence);
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// An answer: JSON, written.
pub(super) struct Answer(Vec<u8>);

impl Answer {
    pub(super) fn of(answer: &impl Serialize) -> Result<Self, Problem> {
        let mut bytes = Vec::with_capacity(512);
        match serde_json::to_writer(&mut bytes, answer) {
            Ok(()) => Ok(Self(bytes)),
            Err(error) => Err(Problem::new(Code::Corrupt, format!("the answer cannot be written: {error}"))),
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.0));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// The pairs of a query that nobody has asked for yet.
pub(super) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Pairs::<Vec<(String, String)>>::from_request_parts(parts, state).await {
            Ok(Pairs(pairs)) => Ok(Self(pairs)),
            Err(error) => Err(Problem::invalid(format!("the query cannot be read: {error}"))),
        }
    }
}

impl Query {
    /// Every value of this name, in their order.
    pub(super) fn all(&mut self, name: &str) -> Vec<String> {
        let taken = self.0.extract_if(.., |(other, _)| other == name);
        taken.map(|(_, value)| value).collect()
    }

    /// The value of this name, which may be there once.
    pub(super) fn one(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let mut values = self.all(name);
        let value = values.pop();
        if values.is_empty() { Ok(value) } else { Err(Problem::invalid(format!("{name} is there twice"))) }
    }

    /// The value of this name, which must be there.
    pub(super) fn needed(&mut self, name: &str) -> Result<String, Problem> {
        self.one(name)?.ok_or_else(|| Problem::invalid(format!("{name} is missing; give it a value")))
    }

    /// The value of this name, read.
    pub(super) fn read<T, E: Display>(
        &mut self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Problem> {
        let value = self.one(name)?.map(|text| read(&text));
        value.transpose().map_err(|error| Problem::invalid(format!("{name}: {error}")))
    }

    /// How long to wait for a running record.
    pub(super) fn wait(&mut self) -> Result<Duration, Problem> {
        let wait = self.read("wait", span::parse)?.unwrap_or_default();
        if wait > WAIT_MAX {
            return Err(Problem::invalid("wait is over 60s; ask again instead of waiting longer"));
        }
        Ok(wait)
    }

    /// How the bytes of an outcome are shown to this caller.
    pub(super) fn content(&mut self, caller: &Caller) -> Result<Content, Problem> {
        let wanted = self.read("outcome_as", |word| match word {
            "json" => Ok(OutcomeAs::Json),
            "base64" => Ok(OutcomeAs::Base64),
            _ => Err("write json or base64"),
        })?;
        Ok(OutcomeAs::content(wanted, caller))
    }

    /// How many are wanted on a page, and behind which.
    pub(super) fn page(&mut self) -> Result<Page, Problem> {
        let limit = self.read("limit", |text| match text.parse() {
            Ok(limit @ 1..=Page::LIMIT_MAX) => Ok(limit),
            _ => Err(format!("write a number from 1 to {}", Page::LIMIT_MAX)),
        })?;
        Ok(Page { limit: limit.unwrap_or(Page::LIMIT), after: self.read("after", id)? })
    }

    /// Refuses whatever nobody asked for, by name: a misspelt filter must not show everything.
    pub(super) fn end(self) -> Result<(), Problem> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::invalid(format!(
                "the query has an unknown member `{name}`; /docs lists those it may have"
            ))),
        }
    }
}

/// Which page of a list.
pub(super) struct Page {
    pub(super) limit: usize,
    pub(super) after: Option<RecordId>,
}

impl Page {
    const LIMIT: usize = 100;
    const LIMIT_MAX: usize = 1_000;
}

/// The id that these digits are.
pub(super) fn id(digits: &str) -> Result<RecordId, &'static str> {
    read_hex(digits).map(RecordId::from_bytes).ok_or("an id is 64 hex digits")
}

/// The scope that a list looks into: what was asked for, within what the caller reaches.
pub(super) fn within(caller: &Caller, asked: Vec<Box<str>>) -> Result<Vec<Box<str>>, Problem> {
    if asked.starts_with(caller.scope()) {
        Ok(asked)
    } else if caller.scope().starts_with(&asked) {
        Ok(caller.scope().to_vec())
    } else {
        Err(Problem::forbidden("the scope is outside this token's scope"))
    }
}

/// Starts all of them before any is waited for, and hands back their answers in order. What a store answers at once is
/// answered in one go, and in one place of memory; the others gather in the engine's batch meanwhile.
pub(super) async fn each<F: Future>(asks: impl ExactSizeIterator<Item = F>) -> Vec<F::Output> {
    let mut started = Vec::with_capacity(asks.len());
    let mut spare: Option<Pin<Box<F>>> = None;
    for ask in asks {
        let mut asked = match spare.take() {
            Some(mut place) => {
                place.set(ask);
                place
            }
            None => Box::pin(ask),
        };
        match poll_fn(|context| Poll::Ready(asked.as_mut().poll(context))).await {
            Poll::Ready(answer) => {
                started.push(Started::Answered(answer));
                spare = Some(asked);
            }
            Poll::Pending => started.push(Started::Going(asked)),
        }
    }
    drop(spare);
    let mut answers = Vec::with_capacity(started.len());
    for ask in started {
        answers.push(match ask {
            Started::Answered(answer) => answer,
            Started::Going(asked) => asked.await,
        });
    }
    answers
}

enum Started<F: Future> {
    Answered(F::Output),
    Going(Pin<Box<F>>),
}
