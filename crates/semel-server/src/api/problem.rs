//! What a refused request is answered with: one type, and one match from an error's kind to a status.

use std::borrow::Cow;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use semel::{Error, ErrorKind};
use serde::{Serialize, Serializer};

/// When to ask again if nobody knows better.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Why a request was not answered with a decision. An answer of its own: what was asked, and what to do now.
#[derive(Clone, Debug)]
pub struct Problem {
    code: Code,
    detail: Cow<'static, str>,
    retry_after: Option<Duration>,
}

/// What went wrong, in one word that programs may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request was refused and nothing happened. Mend what the detail names.
    InvalidRequest,
    /// There was no token, or a wrong one.
    Unauthorized,
    /// The token's role is not enough, or the key is outside its scope.
    Forbidden,
    /// There is no such record or path.
    NotFound,
    /// The path is there, and wants another method.
    MethodNotAllowed,
    /// The body or the outcome is too large.
    TooLarge,
    /// The body is not `application/json`.
    UnsupportedMediaType,
    /// The server does not answer under this name.
    Misdirected,
    /// The token has used up its quota for now.
    QuotaExceeded,
    /// The store did not answer and nothing happened. Ask again later.
    Unavailable,
    /// A reply was lost: it may have taken. Ask again with the same `permit_id` or permit.
    Unknown,
    /// The store is at its bound and nothing happened.
    Full,
    /// A record cannot be read. Nothing was overwritten.
    Corrupt,
}

impl Code {
    /// All of them, in the order of their statuses.
    pub const ALL: [Self; 13] = [
        Self::InvalidRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::Misdirected,
        Self::QuotaExceeded,
        Self::Corrupt,
        Self::Unavailable,
        Self::Unknown,
        Self::Full,
    ];

    /// The word itself.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::TooLarge => "too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::Misdirected => "misdirected",
            Self::QuotaExceeded => "quota_exceeded",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::Full => "full",
            Self::Corrupt => "corrupt",
        }
    }

    /// The same in a few words, for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request was refused",
            Self::Unauthorized => "Who asks is not known",
            Self::Forbidden => "This caller may not do that",
            Self::NotFound => "There is nothing here",
            Self::MethodNotAllowed => "This path wants another method",
            Self::TooLarge => "That is too large",
            Self::UnsupportedMediaType => "The body must be JSON",
            Self::Misdirected => "The server does not answer under this name",
            Self::QuotaExceeded => "That is too often",
            Self::Unavailable => "The store does not answer",
            Self::Unknown => "Nobody knows whether it took",
            Self::Full => "The store is full",
            Self::Corrupt => "A record cannot be read",
        }
    }

    /// What it means, and what to do next.
    pub const fn means(self) -> &'static str {
        match self {
            Self::InvalidRequest => "Nothing happened. Mend what the detail names, and ask again.",
            Self::Unauthorized => {
                "Nothing happened. Send `Authorization: Bearer TOKEN` with a token of the server's file."
            }
            Self::Forbidden => {
                "Nothing happened. Ask with a token whose role is enough, for a key within its scope, and not from another site's page."
            }
            Self::NotFound => "There is no such record or path, or none that this token may know of.",
            Self::MethodNotAllowed => "Nothing happened. Ask with the method that this page names.",
            Self::TooLarge => "Nothing happened. A body has at most 8 MiB, an outcome 4 MiB.",
            Self::UnsupportedMediaType => {
                "Nothing happened. Send JSON, with `Content-Type: application/json`."
            }
            Self::Misdirected => {
                "Nothing happened. Ask under a name that the server has: without tokens, one of its own machine."
            }
            Self::QuotaExceeded | Self::Unavailable => {
                "Nothing happened. Ask again after the seconds in `Retry-After`."
            }
            Self::Unknown => {
                "A reply of the store was lost, and it may have taken. Ask again with the same `permit_id`, or under the same permit."
            }
            Self::Full => "Nothing happened. Sweep the store, raise its bound, or shorten retention.",
            Self::Corrupt => "Nothing was overwritten. Look at the server's log before anything else.",
        }
    }

    /// The status that goes with it.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::QuotaExceeded => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable | Self::Unknown | Self::Full => StatusCode::SERVICE_UNAVAILABLE,
            Self::Corrupt => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Problem {
    /// A problem of this kind; the detail should end with what to do next.
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let retry_after = (code.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(ASK_AGAIN);
        Self { code, detail: detail.into(), retry_after }
    }

    /// The request was refused and nothing happened.
    pub fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    /// The role is not enough, or the key is outside the caller's scope.
    pub fn forbidden(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Forbidden, detail)
    }

    /// There is no such thing, or none that this caller may know of.
    pub fn not_found(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::NotFound, detail)
    }

    /// The quota is used up for so long.
    pub fn quota_exceeded(wait: Duration) -> Self {
        let detail = "this token has used up its quota; ask again after the time in Retry-After";
        Self::new(Code::QuotaExceeded, detail).retry_after(wait)
    }

    /// The same problem, with when to ask again.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// What went wrong.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What went wrong, in words.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

/// The one place where an error of the engine becomes an answer.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Invalid => Code::InvalidRequest,
            ErrorKind::Unavailable => Code::Unavailable,
            ErrorKind::Unknown => Code::Unknown,
            ErrorKind::Full => Code::Full,
            // A lost permit is a decision, and answered as one before it comes here.
            ErrorKind::Corrupt | ErrorKind::Newer | ErrorKind::Lost | _ => Code::Corrupt,
        };
        if code != Code::InvalidRequest {
            tracing::warn!(code = code.as_str(), ?error, "semel: a request was answered with a problem");
        }
        Self::new(code, error.to_string())
    }
}

/// A problem as it is written.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Problem))]
pub(super) struct Written<'a> {
    /// Where this kind of problem is explained, on this server.
    #[cfg_attr(feature = "openapi", schema(example = "/docs#problem-invalid_request"))]
    r#type: String,
    /// The kind of problem in a few words; the same every time.
    #[cfg_attr(feature = "openapi", schema(example = "The request was refused"))]
    title: &'a str,
    /// The HTTP status, again.
    #[cfg_attr(feature = "openapi", schema(example = 400, minimum = 400, maximum = 599))]
    status: u16,
    /// What went wrong this time, and what to do next.
    #[cfg_attr(
        feature = "openapi",
        schema(example = "operation is empty; give it a value, or leave the part out")
    )]
    detail: &'a str,
    /// The kind of problem in one word that programs may rely on.
    code: Code,
}

impl Problem {
    pub(super) fn written(&self) -> Written<'_> {
        Written {
            r#type: format!("/docs#problem-{}", self.code.as_str()),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            detail: &self.detail,
            code: self.code,
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written().serialize(serializer)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Text and numbers alone can always be written.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.code.status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.code == Code::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = self.retry_after {
            // Rounded up: whoever comes back on time must not be early.
            let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
