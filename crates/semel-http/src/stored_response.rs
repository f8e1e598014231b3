//! A response as an outcome: encoded, read again as if a stranger had written it, and replayed.

use std::cell::RefCell;
use std::time::{Duration, UNIX_EPOCH};

use bytes::{BufMut, Bytes};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use semel::clock::Timestamp;
use semel::{Error, ErrorKind, Outcome, OutcomeKind, Replay, Result};
use serde::Serialize;

use crate::body::{ResponseBody, Whole};
use crate::budget::Reserved;
use crate::decided::{Decided, DecisionKind};
use crate::header_filter::{self, is_never_kept};
use crate::problem::{Code, Problem};
use crate::profile::Names;
use crate::refusal::{SOON, overloaded};
use crate::scratch::with_text;
use crate::settle::Settle;

/// What every kept reply starts with; its last byte is the version of the form.
const MAGIC: [u8; 4] = *b"sHR\x01";
const WITH_BODY: u8 = 1;
const WITHOUT_BODY: u8 = 2;
/// What an outcome has beside headers and body: magic, form, status and two counts.
const FIXED_BYTES: usize = 11;
/// How many headers a replay has beside the stored ones: its length, that it is one, and until when.
const ADDED_HEADERS: usize = 3;

/// A whole response that a handler can complete its permit with, inside a transaction of its own.
///
/// ```
/// # #[derive(serde::Serialize)] struct Charge { id: u32 }
/// use http::StatusCode;
/// use semel_http::Reply;
///
/// # fn main() -> semel::Result<()> {
/// let reply = Reply::json(StatusCode::CREATED, &Charge { id: 7 })?.header("location", "/charges/7")?;
/// let outcome = reply.outcome();
/// // permit.complete_in(&mut transaction, outcome).await?; transaction.commit().await?;
/// let response: http::Response<bytes::Bytes> = reply.into_response();
/// # let _ = (outcome, response);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) trailers: Option<HeaderMap>,
    pub(crate) body: Bytes,
}

/// What a record keeps of the first response.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "taken apart at once; a box would cost more than the move")]
pub enum StoredResponse {
    /// All of it: retries get exactly this.
    Whole(Reply),
    /// Only that there was one, and its status if that is known: retries get 409 `outcome_not_kept`.
    NotKept(Option<StatusCode>),
}

impl StoredResponse {
    /// The response in an outcome, validated as untrusted input. An outcome that no response made is
    /// [`NotKept`](Self::NotKept) without a status.
    pub fn of(outcome: &Outcome) -> Result<Self> {
        let whole = outcome.bytes();
        match whole.strip_prefix(&MAGIC) {
            None => Ok(Self::NotKept(None)),
            Some(rest) => read(&whole.slice_ref(rest)).ok_or_else(unreadable),
        }
    }

    /// The status of the first response, if that is known.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Whole(reply) => Some(reply.status),
            Self::NotKept(status) => *status,
        }
    }

    /// The media type of the first response, if it was kept and has one.
    pub fn content_type(&self) -> Option<&str> {
        match self {
            Self::Whole(reply) => reply.headers.get(CONTENT_TYPE)?.to_str().ok(),
            Self::NotKept(_) => None,
        }
    }
}

impl Reply {
    /// A reply with these bytes.
    pub fn new(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { status, headers: HeaderMap::new(), trailers: None, body: body.into() }
    }

    /// A reply with a value as JSON.
    pub fn json<T: Serialize>(status: StatusCode, value: &T) -> Result<Self> {
        let body = serde_json::to_vec(value).map_err(|error| {
            Error::new(ErrorKind::Invalid, "the reply cannot be written as JSON").caused_by(error)
        })?;
        let mut reply = Self::new(status, body);
        reply.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(reply)
    }

    /// The same reply with one more header.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self> {
        let what = "a header's name or value has characters that it cannot have";
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|error| Error::new(ErrorKind::Invalid, what).caused_by(error))?;
        let value = HeaderValue::from_str(value)
            .map_err(|error| Error::new(ErrorKind::Invalid, what).caused_by(error))?;
        self.headers.append(name, value);
        Ok(self)
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The trailers, if there are any.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    /// The body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The outcome, if a retry would get exactly this reply. Otherwise the error names what a replay could not have: an interim
    /// status, a body under a status that has none, or a header that is never replayed.
    pub fn replayable_outcome(&self) -> Result<Outcome> {
        let status = self.status.as_u16();
        if !(200..600).contains(&status) {
            return Err(invalid(format!(
                "{status} cannot be the final status of a response; use 200 to 599"
            )));
        }
        if matches!(status, 204 | 205 | 304) && !self.body.is_empty() {
            return Err(invalid(format!("a response with status {status} has no body; leave the body out")));
        }
        let kept: usize = header_filter::headers(&self.headers, None).count();
        if kept < self.headers.len() {
            let is_dropped = |name: &&HeaderName| is_never_kept(name) || **name == CONTENT_LENGTH;
            let dropped = self.headers.keys().find(is_dropped).map_or("connection", HeaderName::as_str);
            return Err(invalid(format!("the header `{dropped}` is never replayed; leave it out")));
        }
        Ok(self.outcome())
    }

    /// The reply as the outcome that retries are answered with.
    pub fn outcome(&self) -> Outcome {
        outcome(self.status, &self.headers, self.trailers.as_ref(), Some(&self.body), None)
    }

    /// The reply as a response that says that its permit is completed.
    pub fn into_response<B: From<Bytes>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response.extensions_mut().insert(Settle::Completed);
        response
    }
}

impl From<Response<Bytes>> for Reply {
    fn from(response: Response<Bytes>) -> Self {
        let (parts, body) = response.into_parts();
        Self { status: parts.status, headers: parts.headers, trailers: None, body }
    }
}

#[cfg(feature = "axum")]
impl axum::response::IntoResponse for Reply {
    fn into_response(self) -> axum::response::Response {
        Self::into_response(self)
    }
}

/// The outcome of a response; without a body if that is not kept.
pub(crate) fn outcome(
    status: StatusCode,
    headers: &HeaderMap,
    trailers: Option<&HeaderMap>,
    body: Option<&Bytes>,
    allowed: Option<&[HeaderName]>,
) -> Outcome {
    // No client could be sent an interim status in the end.
    let body = body.filter(|_| !status.is_informational());
    let headers_room = headers.iter().map(|(name, value)| header_bytes(name, value)).sum::<usize>();
    let room = FIXED_BYTES.saturating_add(headers_room).saturating_add(body.map_or(0, Bytes::len));
    let mut bytes = Vec::with_capacity(room);
    bytes.put_slice(&MAGIC);
    bytes.put_u8(if body.is_some() { WITH_BODY } else { WITHOUT_BODY });
    bytes.put_u16(status.as_u16());
    if let Some(body) = body {
        put_headers(&mut bytes, headers, allowed);
        put_headers(&mut bytes, trailers.unwrap_or(&HeaderMap::new()), None);
        bytes.put_slice(body);
    }
    let kind = if status.as_u16() < 400 { OutcomeKind::Success } else { OutcomeKind::Failure };
    Outcome::new(kind, bytes)
}

/// What a header takes in an outcome.
fn header_bytes(name: &HeaderName, value: &HeaderValue) -> usize {
    name.as_str().len().saturating_add(value.len()).saturating_add(6)
}

fn put_headers(bytes: &mut Vec<u8>, headers: &HeaderMap, allowed: Option<&[HeaderName]>) {
    let at = bytes.len();
    bytes.put_u16(0);
    let mut count = 0_u16;
    for (name, value) in header_filter::headers(headers, allowed) {
        // Servers bound a head to far less than this; what is longer could not have been sent either.
        let (Ok(name_length), Ok(value_length)) =
            (u16::try_from(name.as_str().len()), u32::try_from(value.len()))
        else {
            continue;
        };
        let Some(next) = count.checked_add(1) else { break };
        count = next;
        bytes.put_u16(name_length);
        bytes.put_slice(name.as_str().as_bytes());
        bytes.put_u32(value_length);
        bytes.put_slice(value.as_bytes());
    }
    if let Some(place) = bytes.get_mut(at..at.saturating_add(2)) {
        place.copy_from_slice(&count.to_be_bytes());
    }
}

fn read(bytes: &Bytes) -> Option<StoredResponse> {
    let mut rest: &[u8] = bytes;
    let form = take(&mut rest, 1)?.first().copied()?;
    let status = StatusCode::from_u16(u16::from_be_bytes(take(&mut rest, 2)?.try_into().ok()?)).ok()?;
    if form == WITHOUT_BODY {
        return rest.is_empty().then_some(StoredResponse::NotKept(Some(status)));
    }
    if form != WITH_BODY {
        return None;
    }
    if status.is_informational() {
        return Some(StoredResponse::NotKept(Some(status)));
    }
    let headers = read_headers(bytes, &mut rest, ADDED_HEADERS)?;
    let trailers = Some(read_headers(bytes, &mut rest, 0)?).filter(|trailers| !trailers.is_empty());
    Some(StoredResponse::Whole(Reply { status, headers, trailers, body: bytes.slice_ref(rest) }))
}

/// Reads headers, with room for as many `more`. Their values share the bytes of the record.
fn read_headers(bytes: &Bytes, rest: &mut &[u8], more: usize) -> Option<HeaderMap> {
    let count = u16::from_be_bytes(take(rest, 2)?.try_into().ok()?);
    let mut headers = HeaderMap::with_capacity(usize::from(count).min(64).saturating_add(more));
    for _ in 0..count {
        let length = u16::from_be_bytes(take(rest, 2)?.try_into().ok()?);
        let name = HeaderName::from_bytes(take(rest, usize::from(length))?).ok()?;
        let length = u32::from_be_bytes(take(rest, 4)?.try_into().ok()?);
        let value = bytes.slice_ref(take(rest, usize::try_from(length).ok()?)?);
        let value = HeaderValue::from_maybe_shared(value).ok()?;
        if !is_never_kept(&name) && name != CONTENT_LENGTH {
            headers.try_append(name, value).ok()?;
        }
    }
    Some(headers)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

/// Whether a status can only come before another one: 1xx, but for a switch of protocols.
pub(crate) fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS
}

/// The first response again.
pub(crate) fn replayed<R>(
    replay: &Replay,
    names: &Names,
    mut reserved: Reserved,
) -> Result<Response<ResponseBody<R>>, Problem> {
    let Reply { status, headers, trailers, body } = match StoredResponse::of(replay.outcome()) {
        Ok(StoredResponse::Whole(first)) => first,
        Ok(StoredResponse::NotKept(status)) => return Err(not_kept(status)),
        Err(error) => return Err(cannot_be_read(&error)),
    };
    let length = body.len();
    reserved.take(length).map_err(overloaded)?;
    let whole = Whole { bytes: body, trailers, reserved };
    let mut response = Response::new(ResponseBody::whole(whole));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    if !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        insert_length(response.headers_mut(), length);
    }
    response.headers_mut().insert(names.replayed.clone(), HeaderValue::from_static("true"));
    insert_expiry(response.headers_mut(), names, replay.remembered_until());
    let key = Some(replay.record().key.id());
    response.extensions_mut().insert(Decided { decision: DecisionKind::Replay, code: None, key });
    Ok(response)
}

/// Says how long the body is. A value that is made of a number is allocated twice, one of its digits once.
fn insert_length(headers: &mut HeaderMap, length: usize) {
    let value = with_text(format_args!("{length}"), |digits| HeaderValue::from_str(digits));
    headers.insert(CONTENT_LENGTH, value.unwrap_or_else(|_| HeaderValue::from(length)));
}

/// Says until when a retry is safe. Whole seconds, rounded down: a second too early harms no client.
pub(crate) fn insert_expiry(headers: &mut HeaderMap, names: &Names, until: Option<Timestamp>) {
    let (Some(name), Some(until)) = (&names.expires, until) else { return };
    if let Some(date) = http_date(until.as_micros() / 1_000_000) {
        headers.insert(name.clone(), date);
    }
}

thread_local! {
    /// The last date that was written: runs that end within one second mostly expire within one.
    static LAST_DATE: RefCell<(u64, Option<HeaderValue>)> = const { RefCell::new((0, None)) };
}

/// A moment, in seconds since 1970, as HTTP writes it.
fn http_date(seconds: u64) -> Option<HeaderValue> {
    LAST_DATE.with_borrow_mut(|last| {
        if last.0 != seconds || last.1.is_none() {
            let moment = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
            let date = HeaderValue::try_from(httpdate::fmt_http_date(moment)).ok()?;
            *last = (seconds, Some(date));
        }
        last.1.clone()
    })
}

/// The refusal of a retry whose first response was not kept.
fn not_kept(status: Option<StatusCode>) -> Problem {
    let problem = Problem::new(
        Code::OutcomeNotKept,
        "The first request was carried out and answered. Its answer was not kept, and it does not run again.",
    );
    match status {
        Some(status) => problem.member("original_status", status.as_u16()),
        None => problem,
    }
}

fn cannot_be_read(error: &Error) -> Problem {
    tracing::error!(%error, "semel: a kept response cannot be read");
    let detail = "The record of this key cannot be read. Nothing ran, and nothing was overwritten.";
    Problem::new(Code::StoreUnavailable, detail).retry_after(SOON)
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

fn unreadable() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "a kept response cannot be read; look at the record with `semel keys show` before anything else",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply() -> Reply {
        let reply = Reply::new(StatusCode::CREATED, vec![0, 255, 10, 13]);
        reply.header("link", "a").unwrap().header("link", "b").unwrap().header("x-\u{2d}a", "1").unwrap()
    }

    #[test]
    fn h58_what_a_retry_could_not_get_is_refused_by_name() {
        let refused = |reply: Reply| reply.replayable_outcome().unwrap_err().to_string();
        assert!(refused(Reply::new(StatusCode::PROCESSING, "")).contains("102"));
        assert!(refused(Reply::new(StatusCode::NO_CONTENT, "body")).contains("204"));
        for name in ["set-cookie", "connection", "content-length", "date"] {
            let reply = Reply::new(StatusCode::CREATED, "").header(name, "1").unwrap();
            assert!(refused(reply).contains(name), "{name}");
        }
        let fine = reply().replayable_outcome().unwrap();
        assert_eq!(fine.bytes(), reply().outcome().bytes());
    }

    #[test]
    fn a_reply_is_read_as_it_was_written() {
        let StoredResponse::Whole(read) = StoredResponse::of(&reply().outcome()).unwrap() else {
            panic!("was kept")
        };
        assert_eq!((read.status, read.body), (StatusCode::CREATED, reply().body));
        assert_eq!(read.headers, reply().headers);
    }

    #[test]
    fn a_reply_without_its_body_is_known_by_its_status() {
        let outcome = outcome(StatusCode::ACCEPTED, &HeaderMap::new(), None, None, None);
        assert!(matches!(
            StoredResponse::of(&outcome),
            Ok(StoredResponse::NotKept(Some(StatusCode::ACCEPTED)))
        ));
    }

    #[test]
    fn a_reply_with_an_interim_status_is_stored_without_its_body() {
        let outcome = Reply::new(StatusCode::PROCESSING, "half of it").outcome();
        assert_eq!(outcome.bytes().get(MAGIC.len()..), Some(&[WITHOUT_BODY, 0, 102][..]));
    }

    #[test]
    fn an_interim_status_that_was_once_stored_with_a_body_is_not_kept() {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([WITH_BODY, 0, 103, 0, 0, 0, 0]);
        let outcome = Outcome::success(bytes);
        assert!(matches!(
            StoredResponse::of(&outcome),
            Ok(StoredResponse::NotKept(Some(StatusCode::EARLY_HINTS)))
        ));
    }

    #[test]
    fn what_no_response_made_is_not_kept() {
        assert!(matches!(
            StoredResponse::of(&Outcome::success("done by hand")),
            Ok(StoredResponse::NotKept(None))
        ));
    }

    #[test]
    fn every_truncation_and_every_flip_is_refused_or_read_without_harm() {
        let whole = reply().outcome().bytes().to_vec();
        for length in MAGIC.len()..whole.len().saturating_sub(reply().body.len()) {
            let cut = Outcome::success(whole[..length].to_vec());
            assert_eq!(
                StoredResponse::of(&cut).err().map(|error| error.kind()),
                Some(ErrorKind::Corrupt),
                "{length}"
            );
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                if let Ok(StoredResponse::Whole(read)) = StoredResponse::of(&Outcome::success(flipped)) {
                    assert!(!read.headers.keys().any(is_never_kept));
                }
            }
        }
    }

    #[test]
    fn a_record_that_smuggles_a_cookie_is_replayed_without_it() {
        let mut bytes = Vec::new();
        bytes.put_slice(&MAGIC);
        bytes.put_slice(&[WITH_BODY, 0, 200, 0, 1, 0, 10]);
        bytes.put_slice(b"set-cookie\0\0\0\x03a=b\0\0hi");
        let StoredResponse::Whole(read) = StoredResponse::of(&Outcome::success(bytes)).unwrap() else {
            panic!("is whole")
        };
        assert_eq!((read.headers.len(), &*read.body), (0, &b"hi"[..]));
    }
}
