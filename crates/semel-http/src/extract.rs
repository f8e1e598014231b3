//! The permit of a run, for axum's handlers.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use http::{StatusCode, request::Parts};
use semel::Permit;

/// The permit of the run that a handler is called in: its attempt, its fence, `derive` and steps.
///
/// ```
/// use semel_http::Granted;
///
/// async fn charge(Granted(permit): Granted) -> String {
///     // The same on every attempt: the provider can tell a second one.
///     permit.derive("provider.charge")
/// }
/// # let _ = charge;
/// ```
///
/// On a route whose key is optional, take `Option<Granted>`.
#[derive(Clone, Debug)]
pub struct Granted(pub Permit);

/// There is no permit: the request had no key, or no layer saw it.
const NONE: (StatusCode, &str) = (
    StatusCode::INTERNAL_SERVER_ERROR,
    "this handler runs under a permit only: make the key required on its route, or take Option<Granted>",
);

impl<S: Sync> FromRequestParts<S> for Granted {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        parts.extensions.get::<Permit>().cloned().map(Self).ok_or(NONE)
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for Granted {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Self::Rejection> {
        Ok(parts.extensions.get::<Permit>().cloned().map(Self))
    }
}
