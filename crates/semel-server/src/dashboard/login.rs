//! The way in and out.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Form, FromRequest, Query, Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::SET_COOKIE;
use maud::{Markup, html};
use serde::Deserialize;

use super::answer::{Refused, page, see_other};
use super::frame::{Frame, Tab, framed};
use super::query::own_page;
use super::session::{Posted, Signed, cookie, is_from_here, is_over_tls, no_cookie};
use crate::state::AppState;

/// Where to go afterwards.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    next: String,
}

/// What the login page sends.
#[derive(Deserialize)]
struct Entry {
    token: String,
    #[serde(default)]
    next: String,
}

/// What the way out sends.
#[derive(Deserialize)]
pub(super) struct Leave {
    #[serde(default)]
    csrf: String,
}

impl Signed for Leave {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

/// The page that asks for a token.
pub(super) async fn show(
    State(served): State<Arc<AppState>>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Response {
    let next = wanted.map(|Query(wanted)| wanted.next).unwrap_or_default();
    if served.tokens.is_empty() {
        return see_other("/");
    }
    page(StatusCode::OK, asking(&next, None))
}

/// Takes a token, and keeps it in the cookie. There is no visit yet that a form could belong to: what the browser says of its
/// origin has to do.
pub(super) async fn enter(
    State(served): State<Arc<AppState>>,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    if !is_from_here(&parts) {
        return Err(Refused::foreign(None));
    }
    let is_over_tls = is_over_tls(&parts);
    let Ok(Form(entry)) = Form::<Entry>::from_request(Request::from_parts(parts, body), &served).await else {
        return Ok(page(StatusCode::BAD_REQUEST, asking("", Some("Give a token."))));
    };
    let token = entry.token.trim();
    let known = served.tokens.caller(token).and_then(|_| cookie(token, is_over_tls));
    let Some(cookie) = known else {
        let why = "This server knows no such token. Check that all of it was copied.";
        return Ok(page(StatusCode::UNAUTHORIZED, asking(&entry.next, Some(why))));
    };
    let mut response = see_other(own_page(&entry.next));
    response.headers_mut().append(SET_COOKIE, cookie);
    Ok(response)
}

/// Ends the visit.
pub(super) async fn leave(_: Posted<Leave>) -> Response {
    ([no_cookie()], see_other("/login")).into_response()
}

fn asking(next: &str, why: Option<&str>) -> Markup {
    let content = html! {
        section.login {
            h1 { "Log in" }
            p { "With a token of the role " strong { "read" } " or " strong { "operate" } "." }
            @if let Some(why) = why { p.flash.wrong #why role="alert" data-test="flash" { (why) } }
            form method="post" action="/login" {
                @if own_page(next) != "/" { input type="hidden" name="next" value=(next); }
                label for="token" { "Token" }
                input #token type="password" name="token" required autofocus autocomplete="current-password"
                    spellcheck="false" placeholder="semel_…" data-test="login-token"
                    aria-describedby=[why.map(|_| "why")] aria-invalid=[why.map(|_| "true")];
                button.primary type="submit" { "Log in" }
            }
            p.hint { "No token? An administrator of this server makes one with " code { "semel token new --name you --role operate" } "." }
        }
    };
    framed(None, &Frame { title: "Log in", tab: Tab::None }, &content)
}
