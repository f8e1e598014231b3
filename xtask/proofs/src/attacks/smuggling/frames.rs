//! Requests of HTTP/2 as frames, written by hand, and what came back.

use test_http::frames::{
    DATA, END_HEADERS, END_STREAM, FRAME_BYTES_MAX, HEADERS, PREFACE, SETTINGS, block, frame,
};
use test_http::{Answer, Ending};

/// What a connection starts with.
pub(super) fn start() -> Vec<u8> {
    [PREFACE.as_slice(), &frame(SETTINGS, 0, 0, &[])].concat()
}

/// A request on a stream: its fields as they are, in their order, and its body if it has one.
pub(super) fn request(stream: u8, fields: &[(&str, &str)], body: Option<&[u8]>) -> Vec<u8> {
    let (stream, block) = (u32::from(stream), block(fields));
    let flags = if body.is_some() { END_HEADERS } else { END_HEADERS | END_STREAM };
    let mut bytes = frame(HEADERS, flags, stream, &block);
    let mut parts = body.unwrap_or_default().chunks(FRAME_BYTES_MAX).peekable();
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_none() { END_STREAM } else { 0 };
        bytes.extend(frame(DATA, flags, stream, part));
    }
    bytes
}

/// What came on a stream, as far as its body tells: `None` if nothing did.
pub(super) fn answer(bytes: &[u8], stream: u8) -> Option<Answer> {
    let (mut rest, mut body, mut has_head) = (bytes, Vec::new(), false);
    while let Some((head, after)) = rest.split_at_checked(9) {
        let [a, b, c, kind, _, _, _, _, of] = head else { break };
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        let Some((payload, after)) = after.split_at_checked(length) else { break };
        has_head |= (*kind, *of) == (HEADERS, stream);
        if (*kind, *of) == (DATA, stream) {
            body.extend_from_slice(payload);
        }
        rest = after;
    }
    has_head.then(|| answer_of(body))
}

/// An answer of which only the body can be read: what it says of itself.
fn answer_of(body: Vec<u8>) -> Answer {
    let text = String::from_utf8_lossy(&body).into_owned();
    let after = |name: &str| text.split_once(name).map(|(_, after)| after);
    let target = after("\"for\":\"").and_then(|after| after.split_once('"')).map(|(target, _)| target);
    let headers = target.map(|target| ("saw".to_owned(), format!("- {target}"))).into_iter().collect();
    let status = after("\"status\":").and_then(|after| after.get(..3)).and_then(|status| status.parse().ok());
    let status = status.unwrap_or(if target.is_some() { 201 } else { 400 });
    Answer { status, headers, body, ending: Ending::Whole, ..Answer::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_by_its_stream() {
        let body = br#"{"call":1,"for":"/a"}"#;
        let bytes =
            [frame(SETTINGS, 0, 0, &[]), frame(HEADERS, 4, 1, b"x"), frame(DATA, 1, 1, body)].concat();
        assert_eq!(answer(&bytes, 1).unwrap().first("saw"), Some("- /a"));
        assert_eq!(answer(&bytes, 3), None);
    }
}
