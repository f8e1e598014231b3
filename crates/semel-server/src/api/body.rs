//! Bodies: JSON that is read strictly, and answers that are written straight to bytes.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::{Deserialize, Serialize};

use super::problem::{Code, Problem};

/// The largest body of a request.
pub(super) const BODY_BYTES_MAX: usize = 8 << 20;

/// The body of a request, which says that it is JSON. What is in it is read later, without a copy.
pub(super) struct Json(Bytes);

impl Json {
    /// What the body says. Members that nobody knows are refused by name: a misspelt one must not be ignored.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        serde_json::from_slice(&self.0)
            .map_err(|error| Problem::invalid(format!("the body cannot be read: {error}")))
    }
}

impl<S: Sync> FromRequest<S> for Json {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        if !is_json(&parts.headers) {
            let detail = "the body must be JSON; say so with Content-Type: application/json";
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
        if announced_bytes(&parts.headers).is_some_and(|bytes| bytes > BODY_BYTES_MAX as u64) {
            return Err(too_large());
        }
        whole(body).await.map(Self)
    }
}

async fn whole(body: Body) -> Result<Bytes, Problem> {
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::invalid("the body ended before it was whole; send it again")),
    }
}

fn too_large() -> Problem {
    let detail = format!("the body is larger than {BODY_BYTES_MAX} bytes; send less at a time");
    Problem::new(Code::TooLarge, detail)
}

fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// `application/json`, with parameters or without.
fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(first), None) = (types.next(), types.next()) else { return false };
    let Ok(text) = first.to_str() else { return false };
    let essence = text.split_once(';').map_or(text, |(essence, _)| essence);
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// An answer: JSON, written.
pub(super) struct Answer(Vec<u8>);

impl Answer {
    pub(super) fn of(answer: &impl Serialize) -> Result<Self, Problem> {
        let mut bytes = Vec::with_capacity(512);
        match serde_json::to_writer(&mut bytes, answer) {
            Ok(()) => Ok(Self(bytes)),
            Err(error) => Err(Problem::new(Code::Corrupt, format!("the answer cannot be written: {error}"))),
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.0));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
