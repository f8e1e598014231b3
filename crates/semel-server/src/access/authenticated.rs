//! The caller of a request of the API.

use std::sync::{Arc, LazyLock};

use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;

use super::caller::{Caller, Need};
use crate::api::problem::{Code, Problem};
use crate::dashboard::session_of;
use crate::serve::note_caller;
use crate::state::AppState;

static LOCAL: LazyLock<Arc<Caller>> = LazyLock::new(|| Arc::new(Caller::local()));

/// Who asks, by the token in `Authorization`. Cookies count for nothing here.
#[derive(Clone, Debug)]
pub struct Authenticated(pub Arc<Caller>);

impl Authenticated {
    /// Who asks with these headers.
    pub fn of(served: &AppState, headers: &HeaderMap) -> Result<Self, Problem> {
        if served.tokens.is_empty() {
            return Ok(Self(Arc::clone(&LOCAL)));
        }
        let token = bearer(headers)?;
        let caller = served.tokens.caller(token);
        caller
            .map(Self::noted)
            .ok_or_else(|| unauthorized("this token is not known here; was it taken out of the file?"))
    }

    /// Who looks: by token, or by the dashboard's cookie, because a browser sends no token with what it follows or listens to.
    /// For requests that change nothing.
    pub fn looking(served: &AppState, headers: &HeaderMap) -> Result<Self, Problem> {
        if !headers.contains_key(AUTHORIZATION)
            && let Some(caller) = session_of(headers).and_then(|token| served.tokens.caller(&token))
        {
            return Ok(Self::noted(caller));
        }
        Self::of(served, headers)
    }

    fn noted(caller: Arc<Caller>) -> Self {
        note_caller(&caller);
        Self(caller)
    }

    /// Whether the caller's role is enough.
    pub fn need(&self, need: Need) -> Result<(), Problem> {
        if self.0.may(need) {
            return Ok(());
        }
        let (role, what) = (self.0.role_word(), what(need));
        Err(Problem::forbidden(format!(
            "the role \"{role}\" is not enough to {what}; ask with another token"
        )))
    }
}

impl FromRequestParts<Arc<AppState>> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, served: &Arc<AppState>) -> Result<Self, Problem> {
        Self::of(served, &parts.headers)
    }
}

/// The token of `Authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (line, None) = (lines.next(), lines.next()) else {
        return Err(unauthorized("there are several tokens; send one"));
    };
    let line = line.ok_or_else(|| unauthorized("there is no token; send `Authorization: Bearer TOKEN`"))?;
    let (scheme, token) = line.to_str().ok().and_then(|line| line.split_once(' ')).unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(unauthorized("this is no bearer token; send `Authorization: Bearer TOKEN`"));
    }
    Ok(token.trim())
}

fn unauthorized(detail: &'static str) -> Problem {
    Problem::new(Code::Unauthorized, detail)
}

fn what(need: Need) -> &'static str {
    match need {
        Need::Claim => "claim, and to settle what was claimed",
        Need::See => "see a record",
        Need::List => "see which records there are",
        Need::Content => "see what is in an outcome",
        Need::Act => "release or resolve a record",
    }
}
