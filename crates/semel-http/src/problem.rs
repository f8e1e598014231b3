//! Refusals: `application/problem+json` (RFC 9457), one code a case.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version};
use serde_json::{Map, Value};

use crate::body::{ResponseBody, Whole};
use crate::decided::Decided;
use crate::profile::Profile;

/// Why semel answered by itself. The word is the problem's `code`, and the end of its `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The route wants a key, and there is none.
    KeyMissing,
    /// The key cannot be read.
    KeyMalformed,
    /// Nobody can tell whose key it is.
    CallerUnknown,
    /// The key was used for another request.
    Mismatch,
    /// The first request with this key still runs.
    InFlight,
    /// A run was started, and nobody knows how it ended.
    OutcomeUnknown,
    /// A run was started, nobody knows how it ended, and a person must decide.
    OutcomeHeld,
    /// The first request was answered, but its answer was not kept.
    OutcomeNotKept,
    /// The store does not answer, so nothing ran.
    StoreUnavailable,
    /// A covered request's body is over the bound.
    BodyTooLarge,
    /// A covered request's body ended early, or did not come in time.
    BodyIncomplete,
    /// The caller is over its quota.
    QuotaExceeded,
    /// The service behind the proxy cannot be reached, so nothing ran.
    UpstreamUnreachable,
    /// There is no room for another request now, so nothing ran.
    Overloaded,
    /// The request is not one that a proxy may pass on, so nothing ran.
    RequestMalformed,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::KeyMissing,
        Self::KeyMalformed,
        Self::CallerUnknown,
        Self::Mismatch,
        Self::InFlight,
        Self::OutcomeUnknown,
        Self::OutcomeHeld,
        Self::OutcomeNotKept,
        Self::StoreUnavailable,
        Self::BodyTooLarge,
        Self::BodyIncomplete,
        Self::QuotaExceeded,
        Self::UpstreamUnreachable,
        Self::Overloaded,
        Self::RequestMalformed,
    ];

    /// The machine-readable word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::KeyMissing => "key_missing",
            Self::KeyMalformed => "key_malformed",
            Self::CallerUnknown => "caller_unknown",
            Self::Mismatch => "mismatch",
            Self::InFlight => "in_flight",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::OutcomeHeld => "outcome_held",
            Self::OutcomeNotKept => "outcome_not_kept",
            Self::StoreUnavailable => "store_unavailable",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyIncomplete => "body_incomplete",
            Self::QuotaExceeded => "quota_exceeded",
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::Overloaded => "overloaded",
            Self::RequestMalformed => "request_malformed",
        }
    }

    /// The title that people read.
    pub const fn title(self) -> &'static str {
        match self {
            Self::KeyMissing => "Idempotency-Key is missing",
            Self::KeyMalformed => "Idempotency-Key is malformed",
            Self::CallerUnknown => "The caller is unknown",
            Self::Mismatch => "Idempotency-Key is already used",
            Self::InFlight => "A request is outstanding for this Idempotency-Key",
            Self::OutcomeUnknown => "The outcome of this request is unknown",
            Self::OutcomeHeld => "The outcome of this request is held for review",
            Self::OutcomeNotKept => "The request was answered, but its answer was not kept",
            Self::StoreUnavailable => "The idempotency store is unavailable",
            Self::BodyTooLarge => "The request body is too large",
            Self::BodyIncomplete => "The request body is incomplete",
            Self::QuotaExceeded => "The quota of this caller is used up",
            Self::UpstreamUnreachable => "The upstream cannot be reached",
            Self::Overloaded => "Too many requests are in flight",
            Self::RequestMalformed => "The request cannot be passed on",
        }
    }

    /// The status, unless the profile says another.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::KeyMissing
            | Self::KeyMalformed
            | Self::CallerUnknown
            | Self::BodyIncomplete
            | Self::RequestMalformed => StatusCode::BAD_REQUEST,
            Self::InFlight | Self::OutcomeHeld | Self::OutcomeNotKept => StatusCode::CONFLICT,
            Self::Mismatch => StatusCode::UNPROCESSABLE_ENTITY,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::QuotaExceeded => StatusCode::TOO_MANY_REQUESTS,
            Self::UpstreamUnreachable => StatusCode::BAD_GATEWAY,
            Self::StoreUnavailable | Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::OutcomeUnknown => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}

/// What every refusal's `type` begins with, unless the profile says otherwise.
pub(crate) const PROBLEM_BASE: &str = "urn:semel:problem:";

impl Code {
    /// The code of a refusal that another semel sent, as its `type` says it. A service's own problems have types of their own.
    pub(crate) fn of_response(profile: &Profile, headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        if headers.get(CONTENT_TYPE)? != "application/problem+json" {
            return None;
        }
        let members: Map<String, Value> = serde_json::from_slice(body).ok()?;
        let kind = members.get("type")?.as_str()?;
        let bases = [&*profile.problem_base, PROBLEM_BASE];
        let word = bases.into_iter().find_map(|base| kind.strip_prefix(base))?;
        Self::ALL.into_iter().find(|code| code.word() == word)
    }
}

/// A refusal in the making. It never holds anything of a request or of a stored response.
#[derive(Clone, Debug)]
#[must_use = "a problem is nothing until it is sent as a response"]
pub struct Problem {
    code: Code,
    detail: Box<str>,
    retry_after: Option<Duration>,
    members: Map<String, Value>,
    closes: bool,
    status: Option<StatusCode>,
    challenge: Option<HeaderValue>,
}

impl Problem {
    /// A refusal, with a detail that says what to do.
    pub fn new(code: Code, detail: impl Into<Box<str>>) -> Self {
        Self {
            code,
            detail: detail.into(),
            retry_after: None,
            members: Map::new(),
            closes: false,
            status: None,
            challenge: None,
        }
    }

    /// When it is worth asking again; rounded up to whole seconds, and at least one.
    pub fn retry_after(mut self, span: Duration) -> Self {
        self.retry_after = Some(span);
        self
    }

    /// One more member.
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// Another status than its code has.
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// What credentials would do: the value of `WWW-Authenticate`, which a 401 must have.
    pub fn challenge(mut self, challenge: HeaderValue) -> Self {
        self.challenge = Some(challenge);
        self
    }

    /// The connection must not be used again: there may be bytes of this request left on it.
    pub fn closing(mut self) -> Self {
        self.closes = true;
        self
    }

    /// Why.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The refusal as a response, as the profile has it.
    pub fn response<R>(self, profile: &Profile, version: Version) -> Response<ResponseBody<R>> {
        let status = self.status.unwrap_or_else(|| profile.statuses.of(self.code));
        let mut members = Map::new();
        members.insert("type".into(), format!("{}{}", profile.problem_base, self.code.word()).into());
        members.insert("title".into(), self.code.title().into());
        members.insert("status".into(), status.as_u16().into());
        members.insert("detail".into(), String::from(self.detail).into());
        members.insert("code".into(), self.code.word().into());
        members.extend(self.members);
        let bytes = Bytes::from(Value::Object(members).to_string());
        let mut response = Response::new(ResponseBody::whole(Whole::new(bytes)));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(span) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(span)));
        }
        if let Some(challenge) = self.challenge {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        // HTTP/2 has no connection header; an unread stream is reset there and disturbs nobody.
        if self.closes && version < Version::HTTP_2 {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response.extensions_mut().insert(Decided::refused(self.code));
        response
    }
}

/// Rounded up to whole seconds, and at least one.
pub(crate) fn whole_seconds(span: Duration) -> u64 {
    let rounded_up = span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0));
    rounded_up.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_one_word_and_no_two_have_the_same() {
        let mut words: Vec<_> = Code::ALL.iter().map(|code| code.word()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
    }

    #[test]
    fn a_span_is_rounded_up_and_never_nothing() {
        assert_eq!(whole_seconds(Duration::ZERO), 1);
        assert_eq!(whole_seconds(Duration::from_millis(1_001)), 2);
        assert_eq!(whole_seconds(Duration::from_secs(7)), 7);
    }
}
