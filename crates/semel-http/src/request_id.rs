//! The id of a request, as its client or a gateway in front gave it: for logs, and for the record. Never part of the identity.

use http::{HeaderMap, HeaderName};

use crate::profile::Names;

/// The longest id that is taken: it is written to logs and kept in records.
pub const REQUEST_ID_BYTES_MAX: usize = 128;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The id of the request with these headers: `X-Request-Id` if it is 1 to 128 bytes of visible ASCII, or else the trace id of
/// a valid W3C `traceparent`. A header that is there twice names nothing.
pub fn request_id(headers: &HeaderMap) -> Option<&str> {
    stated(headers).or_else(|| trace_id(headers))
}

/// The same for a request with an idempotency key. An `X-Request-Id` that is the key itself is not taken: keys are not logged.
pub fn request_id_beside_key<'h>(headers: &'h HeaderMap, names: &Names) -> Option<&'h str> {
    let keys = || [&names.key].into_iter().chain(&names.key_aliases).flat_map(|name| headers.get_all(name));
    let is_key = |id: &str| keys().any(|key| unquoted(key.as_bytes()).eq_ignore_ascii_case(id.as_bytes()));
    stated(headers).filter(|id| !is_key(id)).or_else(|| trace_id(headers))
}

fn stated(headers: &HeaderMap) -> Option<&str> {
    let id = only(headers, &REQUEST_ID)?;
    let is_sane =
        (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    is_sane.then_some(id)
}

/// The trace id of `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. Versions after 00 may have more parts.
fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut parts = only(headers, &TRACEPARENT)?.split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_version = is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
    let is_valid = is_version && is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2);
    is_valid.then_some(trace)
}

fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    // Most requests have neither header, and pay for one look each.
    let mut lines = headers.get_all(name).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    line.to_str().ok()
}

/// An id of zeros means that there is none.
fn is_id(text: &str, digits: usize) -> bool {
    is_hex(text, digits) && text.bytes().any(|byte| byte != b'0')
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn unquoted(key: &[u8]) -> &[u8] {
    let key = key.trim_ascii();
    key.strip_prefix(b"\"").and_then(|key| key.strip_suffix(b"\"")).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().expect("is a value"));
        }
        headers
    }

    #[test]
    fn a_sane_request_id_goes_before_a_trace_id() {
        let trace = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let longest = "i".repeat(REQUEST_ID_BYTES_MAX);
        for id in ["req-1", "a/b=c}\"", &longest] {
            assert_eq!(request_id(&headers(&[("x-request-id", id), ("traceparent", &trace)])), Some(id));
        }
        let too_long = "i".repeat(REQUEST_ID_BYTES_MAX + 1);
        for id in ["", "two words", "tab\tbed", "caf\u{e9}", &too_long] {
            let both = headers(&[("x-request-id", id), ("traceparent", &trace)]);
            assert_eq!(request_id(&both), Some(TRACE), "{id:?}");
            assert_eq!(request_id(&headers(&[("x-request-id", id)])), None, "{id:?}");
        }
        assert_eq!(request_id(&headers(&[("x-request-id", "a"), ("x-request-id", "b")])), None);
        assert_eq!(request_id(&headers(&[])), None);
    }

    #[test]
    fn only_a_valid_traceparent_names_a_trace() {
        let parent = "00f067aa0ba902b7";
        for fine in [format!("00-{TRACE}-{parent}-00"), format!("cc-{TRACE}-{parent}-01-later")] {
            assert_eq!(request_id(&headers(&[("traceparent", &fine)])), Some(TRACE), "{fine}");
        }
        for wrong in [
            String::new(),
            TRACE.to_owned(),
            format!("00-{TRACE}-{parent}"),
            format!("00-{TRACE}-{parent}-01-more"),
            format!("ff-{TRACE}-{parent}-01"),
            format!("00-{}-{parent}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{}-{parent}-01", TRACE.to_uppercase()),
            format!("00-{}-{parent}-01", TRACE.trim_end_matches('6')),
            format!("0-{TRACE}-{parent}-01"),
        ] {
            assert_eq!(request_id(&headers(&[("traceparent", &wrong)])), None, "{wrong}");
        }
    }

    #[test]
    fn a_request_id_that_is_the_key_is_not_taken() {
        let names = Profile::ietf().names;
        for key in ["8e03978e", "\"8e03978e\"", " \"8E03978E\" "] {
            let same = headers(&[("idempotency-key", key), ("x-request-id", "8e03978e")]);
            assert_eq!(request_id_beside_key(&same, &names), None, "{key}");
        }
        let other = headers(&[("idempotency-key", "8e03978e"), ("x-request-id", "req-1")]);
        assert_eq!(request_id_beside_key(&other, &names), Some("req-1"));
    }
}
