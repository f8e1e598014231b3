//! Headers that are between two neighbours only, and never passed on.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// Takes out what the client said to this proxy alone. What is left of `TE` is `trailers`, which gRPC asks for.
pub(crate) fn strip_request(headers: &mut HeaderMap) {
    let trailers = wants_trailers(headers);
    strip(headers);
    // The proxy answers it itself, as soon as the body is wanted.
    headers.remove(EXPECT);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Takes out what the upstream said to this proxy alone.
pub(crate) fn strip_response(headers: &mut HeaderMap) {
    strip(headers);
}

/// Takes out of a request's trailers what only a head may say: how the message is framed, where it goes, whose it is and
/// what it must happen once under. The proxy has decided all that from the head; nobody may hear something else later.
pub(crate) fn strip_trailers(trailers: &mut HeaderMap) {
    strip(trailers);
    for name in [&AUTHORIZATION, &CONTENT_LENGTH, &COOKIE, &EXPECT, &FORWARDED, &HOST, &TRAILER] {
        trailers.remove(name);
    }
    remove_where(trailers, |name| name.ends_with("idempotency-key") || name.starts_with("x-forwarded-"));
}

fn strip(headers: &mut HeaderMap) {
    strip_named(headers);
    for name in [&TRANSFER_ENCODING, &UPGRADE, &TE, &KEEP_ALIVE] {
        headers.remove(name);
    }
    remove_where(headers, is_for_proxies);
}

fn remove_where(headers: &mut HeaderMap, is_refused: impl Fn(&str) -> bool) {
    if headers.keys().any(|name| is_refused(name.as_str())) {
        let names: Vec<_> = headers.keys().filter(|name| is_refused(name.as_str())).cloned().collect();
        for name in names {
            headers.remove(name);
        }
    }
}

/// `Proxy-…` is for proxies, and `Proxy` becomes `HTTP_PROXY` in the environment of a careless service.
fn is_for_proxies(name: &str) -> bool {
    name == "proxy" || name.starts_with("proxy-")
}

/// Takes out `Connection`, and what it names. Names that frame or route a message are not for it to name.
fn strip_named(headers: &mut HeaderMap) {
    if !headers.contains_key(CONNECTION) {
        return;
    }
    let values: Vec<_> = headers.get_all(CONNECTION).iter().cloned().collect();
    headers.remove(CONNECTION);
    let names = values.iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    for name in names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok()) {
        if name != CONTENT_LENGTH && name != HOST {
            headers.remove(name);
        }
    }
}

fn wants_trailers(headers: &HeaderMap) -> bool {
    headers.get_all(TE).iter().any(|value| {
        value
            .as_bytes()
            .split(|byte| *byte == b',')
            .any(|word| word.trim_ascii().eq_ignore_ascii_case(b"trailers"))
    })
}
