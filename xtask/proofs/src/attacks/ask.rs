//! Requests of well-behaved clients, as bytes.

/// How a body says where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length,
    Chunks,
}

/// The body of a charge.
pub(super) const BODY: &str = r#"{"amount":1999,"currency":"eur","customer":"c-7","memo":"two books"}"#;

/// A key that nobody used before.
pub(super) fn new_key(what: &str) -> String {
    format!("{what}-{:016x}", rand::random::<u64>())
}

/// A charge under a key.
pub(super) fn charge(path: &str, caller: &str, key: &str, framing: Framing) -> Vec<u8> {
    let head = head("POST", path, caller);
    let (fields, body) = match framing {
        Framing::Length => (format!("Content-Length: {}", BODY.len()), BODY.to_owned()),
        Framing::Chunks => {
            let (one, other) = BODY.split_at(BODY.len() / 2);
            let chunk = |part: &str| format!("{:x}\r\n{part}\r\n", part.len());
            ("Transfer-Encoding: chunked".to_owned(), format!("{}{}0\r\n\r\n", chunk(one), chunk(other)))
        }
    };
    format!("{head}Content-Type: application/json\r\nIdempotency-Key: {key}\r\n{fields}\r\n\r\n{body}")
        .into_bytes()
}

/// A request that changes nothing.
pub(super) fn look(path: &str, caller: &str) -> Vec<u8> {
    format!("{}\r\n", head("GET", path, caller)).into_bytes()
}

fn head(method: &str, path: &str, caller: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: api.test\r\nUser-Agent: abuse/1\r\nAccept: */*\r\nAuthorization: Bearer {caller}\r\n"
    )
}
