//! A page as a response, and what stands on it if something went wrong.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER, SET_COOKIE};
use http::{HeaderName, HeaderValue, StatusCode};
use maud::{Markup, html};
use semel::{Error, ErrorKind};

use super::frame::{Frame, Tab, framed};
use super::session::Visitor;
use crate::access::Need;

/// Nothing but this server's own files, and no script or style inside a page: what a stranger wrote cannot become either.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// What every page is sent with. The referrer's policy must not be `no-referrer`: browsers would send forms without an origin.
const HEADERS: [(&str, &str); 7] = [
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "no-store"),
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// A page.
pub(super) fn page(status: StatusCode, markup: Markup) -> Response {
    let mut response = (status, markup.into_string()).into_response();
    for (name, value) in HEADERS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// A page for this visitor.
pub(super) fn shown(visitor: &Visitor, frame: &Frame<'_>, content: &Markup) -> Response {
    with_status(StatusCode::OK, visitor, frame, content)
}

pub(super) fn with_status(
    status: StatusCode,
    visitor: &Visitor,
    frame: &Frame<'_>,
    content: &Markup,
) -> Response {
    let mut response = page(status, framed(Some(visitor), frame, content));
    if let Some(cookie) = visitor.cookie() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// To another page of this server.
pub(super) fn see_other(to: &str) -> Response {
    let mut response = (StatusCode::SEE_OTHER, [(CACHE_CONTROL, "no-store")]).into_response();
    let to = HeaderValue::try_from(to).unwrap_or_else(|_| HeaderValue::from_static("/"));
    response.headers_mut().insert(LOCATION, to);
    response
}

/// A page instead of the one that was asked for.
#[derive(Debug)]
pub(super) struct Refused(Box<Response>);

impl From<Response> for Refused {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl Refused {
    /// The role is not enough.
    pub(super) fn role(visitor: &Visitor, need: Need) -> Self {
        let enough = match need {
            Need::Claim => "work",
            Need::See => "work, read or operate",
            Need::List => "read or operate",
            Need::Content => "work or operate",
            Need::Act => "operate",
        };
        let why = html! {
            p { "You are here as " strong { (visitor.caller.name()) } ", whose role is " strong { (visitor.caller.role_word()) }
                ". This needs the role " strong { (enough) } "." }
            p { "Log out and come back with another token, or ask an administrator of this server." }
        };
        Self::told(Some(visitor), StatusCode::FORBIDDEN, "Your role is not enough", &why)
    }

    /// Too many asks.
    pub(super) fn quota(visitor: &Visitor, wait: Duration) -> Self {
        let seconds = wait.as_millis().div_ceil(1_000).max(1).to_string();
        let why = html! { p { "This token has used up its quota. Try again in " (seconds) " s." } };
        let mut refused = Self::told(Some(visitor), StatusCode::TOO_MANY_REQUESTS, "Too many requests", &why);
        if let Ok(seconds) = HeaderValue::try_from(seconds) {
            refused.0.headers_mut().insert(RETRY_AFTER, seconds);
        }
        refused
    }

    /// A form that no page of this server sent, or one of an earlier visit.
    pub(super) fn foreign(visitor: Option<&Visitor>) -> Self {
        let why = html! {
            p { "Nothing was changed. The form came from another site, or from a page of an earlier visit." }
            p { "Open the page anew, and send it again from there." }
        };
        Self::told(visitor, StatusCode::FORBIDDEN, "The form was refused", &why)
    }

    /// A form that cannot be read.
    pub(super) fn form(visitor: &Visitor, why: &str) -> Self {
        let why = html! {
            p { "Nothing was changed. " (why) }
            p { "Go back and send it again. An outcome of more than a megabyte goes through the API or " code { "semel keys resolve" } "." }
        };
        Self::told(Some(visitor), StatusCode::BAD_REQUEST, "The form cannot be read", &why)
    }

    /// Something in the address or in a form is wrong.
    pub(super) fn invalid(visitor: &Visitor, why: &str) -> Self {
        let why = html! { p { (why) } p { "Go back and correct it." } };
        Self::told(Some(visitor), StatusCode::BAD_REQUEST, "Invalid input", &why)
    }

    /// There is no such record, or none that this visitor may know of.
    pub(super) fn no_record(visitor: &Visitor) -> Self {
        let why = html! {
            p { "The store has no record with this id within your scope: its key was never claimed, its retention is over, or it \
                 is in another store." }
            p { a href="/keys" { "Search for it" } " by scope, operation and name." }
        };
        Self::told(Some(visitor), StatusCode::NOT_FOUND, "There is no such key", &why)
    }

    /// The store did not answer, or answered something that cannot be.
    pub(super) fn store(visitor: &Visitor, error: &Error) -> Self {
        let (status, title, next) = told_of(error.kind());
        let why = html! { p { (next) } pre.said { (error) } };
        Self::told(Some(visitor), status, title, &why)
    }

    fn told(visitor: Option<&Visitor>, status: StatusCode, title: &str, why: &Markup) -> Self {
        let content = html! {
            section.told {
                p.status { (status.as_u16()) }
                h1 { (title) }
                (why)
            }
        };
        let frame = Frame { title, tab: Tab::None };
        match visitor {
            Some(visitor) => with_status(status, visitor, &frame, &content).into(),
            None => page(status, framed(None, &frame, &content)).into(),
        }
    }
}

/// What an error of the store means to whoever looks at a page, and what to do next.
fn told_of(kind: ErrorKind) -> (StatusCode, &'static str, &'static str) {
    match kind {
        ErrorKind::Unknown => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Unknown whether it was done",
            "The reply of the store was lost: what you asked for may have been done or not. Check the key before you try again.",
        ),
        ErrorKind::Invalid => {
            (StatusCode::BAD_REQUEST, "Invalid input", "Nothing was changed. Go back and correct it.")
        }
        ErrorKind::Corrupt | ErrorKind::Newer => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "A record cannot be read",
            "Nothing was changed. Look at the server's log; docs/operations.md says what to do.",
        ),
        ErrorKind::Unavailable | ErrorKind::Full | ErrorKind::Lost | _ => (
            StatusCode::SERVICE_UNAVAILABLE,
            "The store does not answer",
            "Nothing was changed. Check that the store runs and that this server reaches it, then reload this page.",
        ),
    }
}

/// There is no such page. Knows nobody, so that it can be shown to everybody.
pub async fn not_found() -> Response {
    let why = html! { p { "There is nothing here. " a href="/" { "Go to the overview" } "." } };
    Refused::told(None, StatusCode::NOT_FOUND, "There is no such page", &why).into_response()
}

/// A file to be kept, of bytes that nobody may take for a page.
pub(super) fn attachment(name: &str, bytes: Vec<u8>) -> Response {
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
        (http::header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (http::header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (http::header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ];
    (headers, bytes).into_response()
}
