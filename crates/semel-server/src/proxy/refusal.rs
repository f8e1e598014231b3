//! What the proxy says itself: `application/problem+json`.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use semel_http::Code;
use serde_json::json;

use super::upstream::UpstreamBody;

/// A refusal with one of the codes.
pub(super) fn of(code: Code, detail: &str) -> Response<UpstreamBody> {
    problem(code.status(), code.word(), code.title(), detail)
}

/// A refusal of a request that is not HTTP as it should be.
pub(super) fn problem(status: StatusCode, code: &str, title: &str, detail: &str) -> Response<UpstreamBody> {
    let body = json!({
        "type": format!("urn:semel:problem:{code}"),
        "title": title,
        "status": status.as_u16(),
        "detail": detail,
        "code": code,
    });
    let mut response = Response::new(UpstreamBody::own(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
