//! What clients see, as data: names of headers, statuses, and the rules of a route. A profile is a table, not code.

use std::time::Duration;

use http::{HeaderName, Method, StatusCode};
use semel::{Lapse, OnOutage};

use crate::json::JsonPath;
use crate::probe::Probe;
use crate::problem::{Code, PROBLEM_BASE};

/// How semel behaves towards clients. [`Profile::ietf`] is the default; every field may be set.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The names of headers.
    pub names: Names,
    /// What a key may look like.
    pub key: KeyForm,
    /// Which status each refusal has.
    pub statuses: Statuses,
    /// What the `type` of a problem starts with; its code follows.
    pub problem_base: Box<str>,
    /// The rules of every route that says nothing else.
    pub rules: Rules,
}

/// The names of headers.
#[derive(Clone, Debug)]
pub struct Names {
    /// Where the key is.
    pub key: HeaderName,
    /// Where else it may be. Two that disagree are refused.
    pub key_aliases: Vec<HeaderName>,
    /// `true` on a replay.
    pub replayed: HeaderName,
    /// Until when a retry is safe; `None` to leave it out.
    pub expires: Option<HeaderName>,
    /// `false` on a response that ran without protection.
    pub protected: HeaderName,
}

/// What a key may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyForm {
    /// What a value without quotes means.
    pub unquoted: UnquotedKeys,
    /// The longest key, in characters after decoding.
    pub chars_max: usize,
}

/// What a value without quotes means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnquotedKeys {
    /// The same key as with quotes: nearly every client sends it so.
    #[default]
    Accepted,
    /// A malformed key.
    Refused,
}

/// Which status each refusal has.
#[derive(Clone, Debug, Default)]
pub struct Statuses {
    changed: Vec<(Code, StatusCode)>,
}

impl Statuses {
    /// The same statuses, with one of them changed.
    #[must_use]
    pub fn with(mut self, code: Code, status: StatusCode) -> Self {
        self.changed.retain(|(changed, _)| *changed != code);
        self.changed.push((code, status));
        self
    }

    /// The status of a refusal.
    pub fn of(&self, code: Code) -> StatusCode {
        let changed = self.changed.iter().find(|(changed, _)| *changed == code);
        changed.map_or_else(|| code.status(), |(_, status)| *status)
    }
}

/// The rules of one route.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Which methods are covered; others pass untouched.
    pub methods: Vec<Method>,
    /// Whether a covered request must have a key.
    pub key: KeyPresence,
    /// What a key is unique within.
    pub scope: KeyScope,
    /// How long a run is good without renewal.
    pub lease: Duration,
    /// How long a finished one is remembered.
    pub retention: Duration,
    /// What happens after the lease of a run whose end is not known: `Hold` (the default here) keeps the key until an
    /// operator decides, `Rerun` lets a retry run as the next attempt.
    pub lapse: Lapse,
    /// Finds out, for a retry, what became of such a run. With a probe, `lapse` is `Hold` whatever it says.
    pub probe: Option<Probe>,
    /// How many runs may be granted before the key is held; `None` for no bound.
    pub attempts_max: Option<u32>,
    /// What a 5xx of the handler means.
    pub on_server_error: OnServerError,
    /// Answers with these statuses are not kept, and a retry runs again. 5xx are up to `on_server_error`.
    pub statuses_not_kept: Vec<StatusCode>,
    /// The longest body of a covered request.
    pub request_bytes_max: usize,
    /// The longest body of a response that is kept.
    pub response_bytes_max: usize,
    /// Which headers of a response are kept; `None` for all but those that must never be.
    pub headers_kept: Option<Vec<HeaderName>>,
    /// What of a JSON body does not count for the fingerprint.
    pub fields_left_out: Vec<JsonPath>,
    /// What a second request is told while the first runs.
    pub while_running: WhileRunning,
    /// What to do while the store does not answer.
    pub on_outage: OnOutage,
}

/// Whether a covered request must have a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyPresence {
    /// Without one it passes untouched.
    #[default]
    Optional,
    /// Without one it is refused.
    Required,
}

/// What a key is unique within.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyScope {
    /// Everything that its caller asks for: the same key on another path is a mismatch.
    #[default]
    Caller,
    /// One method, path and query: the same key elsewhere is another key.
    Route,
}

/// What a 5xx of the handler means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnServerError {
    /// The key is released and a retry runs again.
    #[default]
    Release,
    /// It is stored, and every retry gets it.
    Store,
    /// Nobody runs again until a person decides.
    Hold,
}

/// What a second request is told while the first runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhileRunning {
    /// That it is running.
    #[default]
    Reject,
    /// What came of it, if that is known within this span.
    Wait(Duration),
}

/// The longest body, of a covered request and of a response that is kept, unless said otherwise.
pub const BODY_BYTES_MAX_DEFAULT: usize = 1 << 20;
/// The longest key, unless said otherwise.
pub const KEY_CHARS_MAX_DEFAULT: usize = 255;

impl Profile {
    /// The IETF draft, and what is sensible where it is silent.
    pub fn ietf() -> Self {
        Self {
            names: Names {
                key: HeaderName::from_static("idempotency-key"),
                key_aliases: Vec::new(),
                replayed: HeaderName::from_static("idempotent-replayed"),
                expires: Some(HeaderName::from_static("idempotency-expires")),
                protected: HeaderName::from_static("idempotency-protected"),
            },
            key: KeyForm { unquoted: UnquotedKeys::Accepted, chars_max: KEY_CHARS_MAX_DEFAULT },
            statuses: Statuses::default(),
            problem_base: PROBLEM_BASE.into(),
            rules: Rules::default(),
        }
    }

    /// What Stripe's clients know: a 5xx is stored once the run began, and a mismatch is a 400.
    pub fn stripe() -> Self {
        let ietf = Self::ietf();
        Self {
            statuses: ietf.statuses.with(Code::Mismatch, StatusCode::BAD_REQUEST),
            rules: Rules { on_server_error: OnServerError::Store, ..ietf.rules },
            ..ietf
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::ietf()
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            methods: vec![Method::POST, Method::PATCH],
            key: KeyPresence::default(),
            scope: KeyScope::default(),
            lease: semel::LEASE_DEFAULT,
            retention: semel::RETENTION_DEFAULT,
            // Not the engine's default: an HTTP client sees no attempt number, and "once" must not run twice unasked.
            lapse: Lapse::Hold,
            probe: None,
            attempts_max: None,
            on_server_error: OnServerError::default(),
            statuses_not_kept: [401, 403, 408, 413, 415, 425, 429]
                .into_iter()
                .filter_map(|status| StatusCode::from_u16(status).ok())
                .collect(),
            request_bytes_max: BODY_BYTES_MAX_DEFAULT,
            response_bytes_max: BODY_BYTES_MAX_DEFAULT,
            headers_kept: None,
            fields_left_out: Vec::new(),
            while_running: WhileRunning::default(),
            on_outage: OnOutage::default(),
        }
    }
}
