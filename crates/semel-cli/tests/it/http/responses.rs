//! What the service under test answers with: many headers, many bytes, half a body, and words to the layer.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use futures_util::{StreamExt, stream};
use semel_http::Settle;

const PIECE_BYTES: usize = 64 << 10;

/// Headers that are to be kept.
pub(crate) const KEPT: [(&str, &str); 15] = [
    ("location", "/charges/1"),
    ("ETag", "\"v1\""),
    ("link", "</charges>; rel=\"up\""),
    ("link", "</charges/2>; rel=\"next\""),
    ("content-type", "application/vnd.test+json; charset=utf-8"),
    ("content-encoding", "identity"),
    ("content-language", "en"),
    ("cache-control", "private, max-age=5"),
    ("vary", "accept"),
    ("last-modified", "Tue, 15 Nov 1994 12:45:26 GMT"),
    ("x-request-cost", "3"),
    ("x-several", "first"),
    ("x-several", "second"),
    ("x-several", "first"),
    ("x-smuggled", "evil"),
];

/// Headers that are never kept, though they reach the first client.
pub(crate) const NOT_KEPT: [(&str, &str); 8] = [
    ("set-cookie", "session=s3cret; HttpOnly"),
    ("www-authenticate", "Basic realm=\"r\""),
    ("server-timing", "db;dur=53"),
    ("ratelimit", "limit=10, remaining=1"),
    ("ratelimit-policy", "10;w=60"),
    ("x-ratelimit-limit", "10"),
    ("x-ratelimit-remaining", "9"),
    ("date", "Tue, 15 Nov 1994 08:12:31 GMT"),
];

/// Headers that are for one connection only; `x-hop` is so because `Connection` names it.
pub(crate) const ONE_HOP: [(&str, &str); 4] = [
    ("keep-alive", "timeout=5"),
    ("proxy-authenticate", "Basic realm=\"p\""),
    ("x-hop", "for one hop"),
    ("connection", "x-hop"),
];

/// A created thing with every kind of header that goes from end to end.
pub(crate) fn headers(number: usize) -> Response {
    let all: Vec<_> = KEPT.into_iter().chain(NOT_KEPT).collect();
    let mut response = (StatusCode::CREATED, format!("{{\"call\":{number}}}")).into_response();
    response.headers_mut().remove(header::CONTENT_TYPE);
    (AppendHeaders(all), response).into_response()
}

/// A response with headers that are for one connection only.
pub(crate) fn hop_by_hop(number: usize) -> Response {
    (StatusCode::CREATED, AppendHeaders(ONE_HOP), format!("call {number}")).into_response()
}

/// Bytes that are like no others, in pieces and without a length.
pub(crate) fn big(bytes: usize) -> Body {
    let pieces = pattern(bytes).chunks(PIECE_BYTES).map(Bytes::copy_from_slice).collect::<Vec<_>>();
    Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, io::Error>)))
}

/// The bytes of a [`big`] response.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// Half a body, and then the end of the connection.
pub(crate) fn broken() -> Response {
    let half = stream::iter([Ok(Bytes::from_static(b"half a ")), Err(io::Error::other("told to"))]);
    // Its parts apart, so that the first is on its way when the second fails.
    let apart = half.then(async |piece| {
        tokio::task::yield_now().await;
        piece
    });
    ([(header::CONTENT_LENGTH, "11")], Body::from_stream(apart)).into_response()
}

/// A response that says itself what is to become of it.
pub(crate) fn settled(word: &str, status: StatusCode, number: usize) -> Response {
    let settle = match word {
        "keep" => Settle::Keep,
        "release" => Settle::Release,
        "hold" => Settle::Hold,
        "unknown" => Settle::Unknown,
        _ => panic!("there is no {word}"),
    };
    let mut response = (status, format!("call {number}")).into_response();
    response.extensions_mut().insert(settle);
    response
}
