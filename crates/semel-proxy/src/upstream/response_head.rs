//! The head of an upstream's answer, made one of the proxy's own: one reading of its length (RFC 9112, 6.3), and no
//! version but ours.
//!
//! hyper decodes the body by the same rules, but leaves every header as it came. What is passed on is therefore derived
//! here: a client must not find two lengths and choose the other one.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, StatusCode, Version, response};

/// What is known of a connection once the head of its answer was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    /// It may carry another request after this answer.
    Allowed,
    /// The upstream contradicted itself: nothing after this answer is believed.
    Forbidden,
}

/// Gives an answer one length, in digits, or none, and the version of the proxy. `is_head` says that the request was
/// `HEAD`, `exact` how long the body is, if its decoder knows. An error says what is wrong with the head.
pub(super) fn normalize(
    head: &mut response::Parts,
    is_head: bool,
    exact: Option<u64>,
) -> Result<Reuse, &'static str> {
    head.version = Version::HTTP_11;
    let is_chunked = only_chunked(&head.headers)?;
    if is_chunked {
        let had_length = head.headers.remove(CONTENT_LENGTH).is_some();
        return Ok(if had_length { Reuse::Forbidden } else { Reuse::Allowed });
    }
    let Some(length) = length(&head.headers)? else { return Ok(Reuse::Allowed) };
    let has_no_body = is_head || head.status == StatusCode::NOT_MODIFIED;
    if head.status == StatusCode::NO_CONTENT {
        head.headers.remove(CONTENT_LENGTH);
    } else if !has_no_body && exact.is_some_and(|exact| exact != length) {
        return Err("has another length than its body");
    } else {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(Reuse::Allowed)
}

/// Whether the body is in chunks. Any other coding would have to be decoded, `chunked` twice is two framings, and a list with
/// empty elements is read in two ways, by hyper among others.
fn only_chunked(headers: &HeaderMap) -> Result<bool, &'static str> {
    let mut lines = headers.get_all(TRANSFER_ENCODING).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(false),
        (Some(coding), None) if coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") => Ok(true),
        _ => Err("has a transfer coding other than `chunked`, once"),
    }
}

/// The length that all of `Content-Length` agrees on.
fn length(headers: &HeaderMap) -> Result<Option<u64>, &'static str> {
    let lines = headers.get_all(CONTENT_LENGTH).iter();
    let mut lengths = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(digits);
    let Some(first) = lengths.next() else { return Ok(None) };
    if first.is_none() || lengths.any(|length| length != first) {
        return Err("has a `Content-Length` that is no number, or several that differ");
    }
    Ok(first)
}

/// Digits and nothing else: `parse` alone would take a sign.
fn digits(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let text = std::str::from_utf8(text).ok().filter(|_| text.iter().all(u8::is_ascii_digit))?;
    text.parse().ok()
}
