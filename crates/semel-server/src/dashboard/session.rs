//! Who looks at a page, and forms that prove to be this server's. The cookie is the token itself, so that any number of servers agree without keeping sessions.

use std::sync::Arc;

use axum::extract::{Form, FromRequest, FromRequestParts, Request};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{COOKIE, HOST, ORIGIN, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::answer::{Refused, see_other};
use super::query::encode;
use crate::access::{Caller, Need};
use crate::monitoring::StoreStatus;
use crate::serve::note_caller;
use crate::state::AppState;

/// The cookie's name.
const COOKIE_NAME: &str = "semel_session";
/// How long a browser keeps it: a shift.
const AGE_SECONDS: u32 = 12 * 60 * 60;

/// Put into the extensions of a request that came through TLS: cookies are then sent through TLS only.
#[derive(Clone, Copy, Debug)]
pub struct OverTls;

/// Whoever looks at a page, and may.
pub(super) struct Visitor {
    pub(super) caller: Arc<Caller>,
    /// What the cookie holds.
    session: String,
    /// Set with the page: the visit is new.
    is_new: bool,
    is_over_tls: bool,
    /// Whether there are tokens, so that there is something to log out of.
    pub(super) is_known: bool,
    /// How the store is, for the banner of the page.
    pub(super) store: StoreStatus,
}

impl Visitor {
    /// What a form must hold to be one of this visitor's.
    pub(super) fn csrf(&self) -> String {
        let mut digest = Sha256::new();
        digest.update(b"semel csrf\0");
        digest.update(self.session.as_bytes());
        URL_SAFE_NO_PAD.encode(digest.finalize())
    }

    /// Whether a form came from a page of this visitor's.
    pub(super) fn wrote(&self, csrf: &str) -> bool {
        // A visit that began with this very request has seen no form yet.
        !self.is_new && bool::from(self.csrf().as_bytes().ct_eq(csrf.as_bytes()))
    }

    /// Refuses with a page that says which role is needed.
    pub(super) fn need(&self, need: Need) -> Result<(), Refused> {
        if self.caller.may(need) { Ok(()) } else { Err(Refused::role(self, need)) }
    }

    /// The cookie to be set with a page, if the visit is new.
    pub(super) fn cookie(&self) -> Option<HeaderValue> {
        self.is_new.then(|| cookie(&self.session, self.is_over_tls)).flatten()
    }
}

impl FromRequestParts<Arc<AppState>> for Visitor {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, served: &Arc<AppState>) -> Result<Self, Refused> {
        let is_over_tls = is_over_tls(parts);
        let (session, store) = (session_of(&parts.headers), served.health.latest());
        if served.tokens.is_empty() {
            let (session, is_new) = match session {
                Some(session) => (session, false),
                None => (URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()), true),
            };
            let caller = Arc::new(Caller::local());
            return Ok(Self { caller, session, is_new, is_over_tls, is_known: false, store });
        }
        let known = session.and_then(|session| Some((served.tokens.caller(&session)?, session)));
        let Some((caller, session)) = known else { return Err(to_login(parts)) };
        note_caller(&caller);
        let visitor = Self { caller, session, is_new: false, is_over_tls, is_known: true, store };
        match visitor.caller.admit(1) {
            Ok(()) => Ok(visitor),
            Err(wait) => Err(Refused::quota(&visitor, wait)),
        }
    }
}

/// To the login page, and back again afterwards.
fn to_login(parts: &Parts) -> Refused {
    let wanted = parts.uri.path_and_query().map_or("/", |wanted| wanted.as_str());
    let is_page = parts.method == http::Method::GET && wanted != "/";
    let query = if is_page { format!("?next={}", encode(wanted)) } else { String::new() };
    see_other(&format!("/login{query}")).into()
}

/// What the cookie of a request holds.
pub(crate) fn session_of(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let session = pairs.find_map(|(name, value)| (name == COOKIE_NAME).then_some(value))?;
    (!session.is_empty() && session.len() <= 512).then(|| session.to_owned())
}

pub(super) fn is_over_tls(parts: &Parts) -> bool {
    parts.extensions.get::<OverTls>().is_some()
}

/// The cookie that says who is here; `None` for what cannot be in one.
pub(super) fn cookie(session: &str, is_over_tls: bool) -> Option<HeaderValue> {
    let secure = if is_over_tls { "; Secure" } else { "" };
    let text =
        format!("{COOKIE_NAME}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={AGE_SECONDS}{secure}");
    HeaderValue::try_from(text).ok()
}

/// The cookie that ends a visit.
pub(super) fn no_cookie() -> (http::HeaderName, HeaderValue) {
    let text = "semel_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0";
    (SET_COOKIE, HeaderValue::from_static(text))
}

/// A form that a visitor sent from a page of this server.
pub(super) struct Posted<T> {
    pub(super) visitor: Visitor,
    pub(super) form: T,
}

/// What every form holds.
pub(super) trait Signed {
    /// The digest that only a page of this visitor could know.
    fn csrf(&self) -> &str;
}

impl<T: DeserializeOwned + Signed + Send> FromRequest<Arc<AppState>> for Posted<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, served: &Arc<AppState>) -> Result<Self, Refused> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, served).await?;
        if !is_from_here(&parts) {
            return Err(Refused::foreign(Some(&visitor)));
        }
        let form = Form::<T>::from_request(Request::from_parts(parts, body), served).await;
        let Form(form) = form.map_err(|error| Refused::form(&visitor, &error.body_text()))?;
        if visitor.wrote(form.csrf()) {
            Ok(Self { visitor, form })
        } else {
            Err(Refused::foreign(Some(&visitor)))
        }
    }
}

/// Whether the page that sent this is one of this server's, as far as the browser says.
pub(super) fn is_from_here(parts: &Parts) -> bool {
    let fetched_from = parts.headers.get("sec-fetch-site");
    if fetched_from.is_some_and(|site| site != "same-origin") {
        return false;
    }
    let Some(origin) = parts.headers.get(ORIGIN) else { return true };
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    // HTTP/2 has the host in the target.
    let host = host.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str));
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, origin)| host.is_some_and(|host| origin.eq_ignore_ascii_case(host)))
}
