//! Chunks, written well and badly.

use super::shape::{Draft, Kind, Right, Shape};

/// How much of a line is more than anybody means.
const LONG: usize = 100_000;

pub(super) fn shapes() -> Vec<Shape> {
    Kind::ALL.into_iter().flat_map(|kind| bent(kind).into_iter().chain(fine(kind))).collect()
}

fn shape(
    kind: Kind,
    name: &str,
    fields: &str,
    body: impl FnOnce(&str, String) -> String,
    is_fine: bool,
) -> Shape {
    let draft = Draft::new(kind);
    let hidden = draft.hidden();
    let body = body(&hidden, format!("{:x}", hidden.len()));
    let right = if is_fine { Right::Passed(hidden.into_bytes()) } else { Right::Refused };
    let lines = format!("Transfer-Encoding: chunked\r\n{fields}");
    draft.with(&format!("chunks: {name}"), lines.as_bytes(), body.as_bytes(), right)
}

/// The hidden request is the one chunk. `S` is its size.
fn fine(kind: Kind) -> Vec<Shape> {
    let one = |name: &str, fields: &str, size: &'static str, end: &'static str| {
        let body = move |hidden: &str, s: String| format!("{}\r\n{hidden}\r\n{end}", size.replace('S', &s));
        shape(kind, name, fields, body, true)
    };
    vec![
        one("plain", "", "S", "0\r\n\r\n"),
        one("zeros before the size", "", "0000000S", "0\r\n\r\n"),
        one("several zeros at the end", "", "S", "0000\r\n\r\n"),
        one("extension", "", "S;a=b", "0\r\n\r\n"),
        one("extension without a value", "", "S;a", "0;b\r\n\r\n"),
        one("extension in quotes", "", "S;a=\"b;c\"", "0\r\n\r\n"),
        one("extension that is a request", "", "S;GET /smuggled/ HTTP/1.1", "0\r\n\r\n"),
        one("trailer", "Trailer: X-Sum\r\n", "S", "0\r\nX-Sum: 1\r\n\r\n"),
        one("trailer that nobody announced", "", "S", "0\r\nX-Sum: 1\r\n\r\n"),
        one("length in a trailer", "Trailer: Content-Length\r\n", "S", "0\r\nContent-Length: 5\r\n\r\n"),
        one("coding in a trailer", "", "S", "0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        one("host in a trailer", "Trailer: Host\r\n", "S", "0\r\nHost: other.test\r\n\r\n"),
        one("key in a trailer", "Trailer: Idempotency-Key\r\n", "S", "0\r\nIdempotency-Key: other\r\n\r\n"),
        one("expects to be asked on", "Expect: 100-continue\r\n", "S", "0\r\n\r\n"),
    ]
}

fn bent(kind: Kind) -> Vec<Shape> {
    // `S` is the size, `H` the hidden request.
    let one = |name: &str, body: &'static str| {
        let body = move |hidden: &str, s: String| body.replace('S', &s).replace("~H", hidden);
        shape(kind, name, "", body, false)
    };
    let long = |name: &str, body: fn(&str, String) -> String| shape(kind, name, "", body, false);
    vec![
        one("size with a plus", "+S\r\n~H\r\n0\r\n\r\n"),
        one("size with a minus", "-S\r\n~H\r\n0\r\n\r\n"),
        one("size with 0x", "0xS\r\n~H\r\n0\r\n\r\n"),
        one("size with a letter after it", "Sg\r\n~H\r\n0\r\n\r\n"),
        one("size with a comma", "S,S\r\n~H\r\n0\r\n\r\n"),
        one("size of two words", "S S\r\n~H\r\n0\r\n\r\n"),
        one("size that is none", "\r\n~H\r\n0\r\n\r\n"),
        one("size with NUL", "S\0\r\n~H\r\n0\r\n\r\n"),
        one("size over 64 bits", "10000000000000005\r\n~H\r\n0\r\n\r\n"),
        one("size of many digits", "fffffffffffffffffffffffff\r\n~H\r\n0\r\n\r\n"),
        one("size of 64 bits", "ffffffffffffffff\r\n~H\r\n0\r\n\r\n"),
        one("size of 63 bits", "7fffffffffffffff\r\n~H\r\n0\r\n\r\n"),
        one("size too small", "3\r\n~H\r\n0\r\n\r\n"),
        one("size of nothing, then data", "0\r\n~H\r\n"),
        one("size too large", "fff\r\n~H\r\n0\r\n\r\n"),
        one("no line end after the data", "S\r\n~H0\r\n\r\n"),
        one("LF alone after the data", "S\r\n~H\n0\r\n\r\n"),
        one("CR alone after the data", "S\r\n~H\r0\r\n\r\n"),
        one("two bytes that are no line end", "S\r\n~Hzz0\r\n\r\n"),
        one("CR alone after the size", "S\r~H\r\n0\r\n\r\n"),
        one("no end", "S\r\n~H\r\n"),
        one("no last line end", "S\r\n~H\r\n0\r\n"),
        one("trailer without a colon", "S\r\n~H\r\n0\r\nX-Sum 1\r\n\r\n"),
        one("trailer with a space in its name", "S\r\n~H\r\n0\r\nX Sum: 1\r\n\r\n"),
        one("trailer with NUL", "S\r\n~H\r\n0\r\nX-Sum: \0\r\n\r\n"),
        one("extension with a bare LF", "S;a=b\nc\r\n~H\r\n0\r\n\r\n"),
        one("extension with a bare CR", "S;a=b\rc\r\n~H\r\n0\r\n\r\n"),
        long("extension without end", |hidden, s| {
            format!("{s};{}\r\n{hidden}\r\n0\r\n\r\n", "a".repeat(LONG))
        }),
        long("trailer without end", |hidden, s| {
            format!("{s}\r\n{hidden}\r\n0\r\nX: {}\r\n\r\n", "a".repeat(LONG))
        }),
    ]
}
