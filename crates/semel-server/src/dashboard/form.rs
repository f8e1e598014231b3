//! Forms, and what proves that they are this server's.

use std::sync::Arc;

use axum::extract::{Form, FromRequest, FromRequestParts, Request};
use http::header::{HOST, ORIGIN};
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::answer::Refused;
use super::session::Visitor;
use crate::state::AppState;

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
