//! Refusals: `application/problem+json` (RFC 9457), one code a case.

use http::StatusCode;

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
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 14] = [
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
        }
    }

    /// The status, unless the profile says another.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::KeyMissing | Self::KeyMalformed | Self::CallerUnknown | Self::BodyIncomplete => {
                StatusCode::BAD_REQUEST
            }
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
