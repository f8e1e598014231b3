//! A stored HTTP response as people read it: status line, headers, and the body by its media type.

use std::fmt::Write as _;

use semel_http::{Reply, StoredResponse};
use serde::Serialize;
use serde_json::value::RawValue;

use super::bytes::{dump, size};

/// How much of a text is shown.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// How much of what is no text is shown in hex.
const HEX_BYTES_MAX: usize = 4 << 10;
/// How many fields of a form are shown.
const FIELDS_MAX: usize = 200;
/// Images that a browser draws without running anything.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A stored response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResponseShown {
    /// The status; `None` if only that there was a response is known.
    pub status: Option<u16>,
    /// What the status is called: `Created`.
    pub reason: &'static str,
    /// Names and values in their order. A byte of a value that is no text is shown as `\xNN`.
    pub headers: Vec<(String, String)>,
    /// The headers behind the body.
    pub trailers: Vec<(String, String)>,
    /// The body.
    pub body: BodyShown,
    /// How many bytes the body has.
    pub body_bytes: usize,
    /// Whether the body is longer than what is shown of it.
    pub is_cut: bool,
}

/// A body by its media type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyShown {
    /// JSON, indented. Numbers, names and their order are as they were stored.
    Json(String),
    /// Text.
    Text(String),
    /// The fields of a form, decoded.
    Form(Vec<(String, String)>),
    /// An image of pixels. SVG is shown as the text that it is: it can hold scripts.
    Image {
        /// Such as `image/png`.
        media_type: String,
        /// How many bytes it has.
        bytes: usize,
    },
    /// What is no text: offset, bytes in hex, and what of them is text.
    Binary {
        /// Lines of a dump.
        hex: String,
    },
    /// There is none.
    Empty,
    /// There was one, and it was not stored: retries get 409 `outcome_not_kept`.
    NotKept,
}

impl ResponseShown {
    /// What is kept of a response.
    pub fn of(response: &StoredResponse) -> Self {
        match response {
            StoredResponse::Whole(reply) => Self::whole(reply),
            StoredResponse::NotKept(status) => Self {
                status: status.map(|status| status.as_u16()),
                reason: status.and_then(|status| status.canonical_reason()).unwrap_or_default(),
                headers: Vec::new(),
                trailers: Vec::new(),
                body: BodyShown::NotKept,
                body_bytes: 0,
                is_cut: false,
            },
        }
    }

    /// All of a response.
    pub fn whole(reply: &Reply) -> Self {
        let headers = |headers: &http::HeaderMap| {
            headers.iter().map(|(name, value)| (name.to_string(), readable(value.as_bytes()))).collect()
        };
        let (body, is_cut) = body(reply);
        Self {
            status: Some(reply.status().as_u16()),
            reason: reply.status().canonical_reason().unwrap_or_default(),
            headers: headers(reply.headers()),
            trailers: reply.trailers().map(headers).unwrap_or_default(),
            body,
            body_bytes: reply.body().len(),
            is_cut,
        }
    }

    /// `201 Created`.
    pub fn status_line(&self) -> String {
        match self.status {
            Some(status) => format!("{status} {}", self.reason).trim_end().to_owned(),
            None => "status not kept".to_owned(),
        }
    }

    /// What a retry of the key gets, in a sentence.
    pub fn what_a_retry_gets(&self) -> String {
        let original = match self.status {
            Some(status) => format!("original_status {status}"),
            None => "without an original_status, because no HTTP response made this outcome".to_owned(),
        };
        if self.body == BodyShown::NotKept {
            return format!(
                "The response was not stored. A retry gets 409 with code outcome_not_kept ({original}) and does not run again."
            );
        }
        format!("A retry gets exactly this response ({}).", self.status_line())
    }

    /// The response as lines of text: status line, headers, an empty line, the body.
    pub fn text(&self) -> String {
        let mut text = format!("HTTP {}\n", self.status_line());
        for (name, value) in &self.headers {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}: {value}");
        }
        text.push('\n');
        self.body.write(&mut text, self.body_bytes);
        if self.is_cut {
            let _ = writeln!(text, "… cut here: the body has {}", size(self.body_bytes as u64));
        }
        for (name, value) in &self.trailers {
            let _ = writeln!(text, "trailer {name}: {value}");
        }
        text
    }
}

impl BodyShown {
    /// Bytes without a media type, and whether they are cut: JSON if they are an object or an array, else text, else hex.
    pub fn untyped(bytes: &[u8]) -> (Self, bool) {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let media_type = if text.trim_start().starts_with(['{', '[']) { "application/json" } else { "" };
        Self::typed(media_type, bytes)
    }

    fn typed(media_type: &str, bytes: &[u8]) -> (Self, bool) {
        if bytes.is_empty() {
            return (Self::Empty, false);
        }
        if IMAGES.contains(&media_type) {
            return (Self::Image { media_type: media_type.to_owned(), bytes: bytes.len() }, false);
        }
        let Ok(text) = std::str::from_utf8(bytes) else { return binary(bytes) };
        let is_json = media_type == "application/json" || media_type.ends_with("+json");
        if let Some((json, is_cut)) = Some(text).filter(|_| is_json).and_then(indented) {
            return (Self::Json(json), is_cut);
        }
        if media_type == "application/x-www-form-urlencoded" {
            return form(text);
        }
        let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
        if text.chars().all(is_text) { cut(text) } else { binary(bytes) }
    }

    /// The body as lines of text, of so many bytes in all.
    pub fn text(&self, body_bytes: usize) -> String {
        let mut text = String::new();
        self.write(&mut text, body_bytes);
        text
    }

    fn write(&self, text: &mut String, body_bytes: usize) {
        let _ = match self {
            Self::Json(shown) | Self::Text(shown) => writeln!(text, "{}", shown.trim_end_matches('\n')),
            Self::Form(fields) => {
                fields.iter().try_for_each(|(name, value)| writeln!(text, "{name} = {value}"))
            }
            Self::Image { media_type, .. } => writeln!(text, "({media_type}, {})", size(body_bytes as u64)),
            Self::Binary { hex } => write!(text, "{hex}"),
            Self::Empty => writeln!(text, "(no body)"),
            Self::NotKept => writeln!(text, "(the body was not stored)"),
        };
    }
}

/// The body by its media type, and whether it is cut.
fn body(reply: &Reply) -> (BodyShown, bool) {
    let header = |name| reply.headers().get(name).and_then(|value| value.to_str().ok());
    let is_encoded = header(http::header::CONTENT_ENCODING)
        .is_some_and(|coding| !coding.trim().eq_ignore_ascii_case("identity"));
    if is_encoded && !reply.body().is_empty() {
        return binary(reply.body());
    }
    let media_type = header(http::header::CONTENT_TYPE).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    BodyShown::typed(&media_type, reply.body())
}

fn cut(text: &str) -> (BodyShown, bool) {
    let shown = text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default();
    (BodyShown::Text(shown.to_owned()), shown.len() < text.len())
}

fn binary(bytes: &[u8]) -> (BodyShown, bool) {
    let shown = bytes.get(..HEX_BYTES_MAX).unwrap_or(bytes);
    (BodyShown::Binary { hex: dump(shown) }, shown.len() < bytes.len())
}

fn form(text: &str) -> (BodyShown, bool) {
    let mut fields = text.split('&').filter(|field| !field.is_empty()).map(|field| {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        (decoded(name), decoded(value))
    });
    let shown = fields.by_ref().take(FIELDS_MAX).collect();
    let is_cut = fields.next().is_some();
    (BodyShown::Form(shown), is_cut)
}

/// A name or a value of a form. What is no escape stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let escape = after.first_chunk::<2>().copied().filter(|_| *byte == b'%').and_then(hex_pair);
        match (escape, byte) {
            (Some(escaped), _) => {
                bytes.push(escaped);
                rest = after.get(2..).unwrap_or_default();
            }
            (None, b'+') => {
                bytes.push(b' ');
                rest = after;
            }
            (None, byte) => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_pair(digits: [u8; 2]) -> Option<u8> {
    let digits =
        std::str::from_utf8(&digits).ok().filter(|text| text.chars().all(|c| c.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

/// JSON text with a line for each member; `None` if it is no JSON. Only white space is changed: a value read into a number
/// would lose digits, and one read into a map its order.
fn indented(text: &str) -> Option<(String, bool)> {
    serde_json::from_str::<&RawValue>(text).ok()?;
    let (mut shown, mut depth, mut in_string, mut is_escaped) = (String::new(), 0_usize, false, false);
    let mut chars = text.chars().filter(|c| !c.is_control()).peekable();
    let line = |shown: &mut String, depth: usize| {
        shown.push('\n');
        shown.extend(std::iter::repeat_n("  ", depth.min(64)));
    };
    while let Some(c) = chars.next() {
        if shown.len() >= TEXT_BYTES_MAX {
            return Some((shown, true));
        }
        if in_string {
            in_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            shown.push(c);
            continue;
        }
        match c {
            ' ' => {}
            '{' | '[' => {
                while chars.next_if_eq(&' ').is_some() {}
                shown.push(c);
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    shown.push(end);
                } else {
                    depth = depth.saturating_add(1);
                    line(&mut shown, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut shown, depth);
                shown.push(c);
            }
            ',' => {
                shown.push(c);
                line(&mut shown, depth);
            }
            ':' => shown.push_str(": "),
            _ => {
                in_string = c == '"';
                shown.push(c);
            }
        }
    }
    Some((shown, false))
}

/// The value of a header. Bytes that are no text are escaped.
fn readable(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn shown(content_type: &str, body: impl Into<bytes::Bytes>) -> ResponseShown {
        let reply = Reply::new(StatusCode::CREATED, body).header("content-type", content_type);
        ResponseShown::whole(&reply.expect("is a header"))
    }

    #[test]
    fn h66_json_is_indented_and_keeps_every_digit_and_the_order() {
        let response = shown(
            "application/json; charset=utf-8",
            r#"{"z":9007199254740993, "a":[1.0,{}, [ ] ],"s":"a \"{,:}\" b"}"#,
        );
        let wanted = "{\n  \"z\": 9007199254740993,\n  \"a\": [\n    1.0,\n    {},\n    []\n  ],\n  \"s\": \"a \\\"{,:}\\\" b\"\n}";
        assert_eq!(response.body, BodyShown::Json(wanted.to_owned()));
        assert!(response.text().starts_with("HTTP 201 Created\ncontent-type: application/json"));
        assert_eq!(response.what_a_retry_gets(), "A retry gets exactly this response (201 Created).");
    }

    #[test]
    fn h66_a_body_is_shown_by_its_media_type() {
        assert_eq!(
            shown("application/json", "{").body,
            BodyShown::Text("{".to_owned()),
            "not JSON after all"
        );
        let form = shown("application/x-www-form-urlencoded", "to=M%C3%BCller+AG&cents=42&x=%zz").body;
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            form,
            BodyShown::Form(vec![field("to", "Müller AG"), field("cents", "42"), field("x", "%zz")])
        );
        let image = shown("image/png", vec![0_u8; 9]).body;
        assert_eq!(image, BodyShown::Image { media_type: "image/png".to_owned(), bytes: 9 });
        assert!(matches!(shown("application/pdf", vec![0xff_u8, 0xfe]).body, BodyShown::Binary { .. }));
        assert!(
            matches!(shown("text/plain", "a\u{1b}[2J").body, BodyShown::Binary { .. }),
            "moves the cursor"
        );
        assert_eq!(shown("text/plain", "").body, BodyShown::Empty);
    }

    #[test]
    fn an_svg_is_text_and_never_an_image() {
        let svg = shown("image/svg+xml", "<svg onload=alert(1)>").body;
        assert_eq!(svg, BodyShown::Text("<svg onload=alert(1)>".to_owned()));
    }

    #[test]
    fn bytes_without_a_media_type_are_shown_as_what_they_look_like() {
        let json = |text: &str| BodyShown::Json(text.to_owned());
        assert_eq!(BodyShown::untyped(b" {\"a\":1.10}"), (json("{\n  \"a\": 1.10\n}"), false));
        for text in ["paid", "{not json", "12", "\"text\"", "{'a': 1}", "gr\u{fc}n\n"] {
            assert_eq!(BodyShown::untyped(text.as_bytes()), (BodyShown::Text(text.to_owned()), false));
        }
        for binary in [&b"a\0b"[..], b"\xff\xfe"] {
            assert!(matches!(BodyShown::untyped(binary).0, BodyShown::Binary { .. }));
        }
        assert_eq!(BodyShown::untyped(b""), (BodyShown::Empty, false));
    }

    #[test]
    fn a_body_with_a_content_coding_is_no_text() {
        let reply = Reply::new(StatusCode::OK, "{}").header("content-type", "application/json");
        let reply = reply.and_then(|reply| reply.header("content-encoding", "br")).expect("are headers");
        assert!(matches!(ResponseShown::whole(&reply).body, BodyShown::Binary { .. }));
    }

    #[test]
    fn what_is_shown_is_bounded_however_large_or_nested_the_body_is() {
        for body in ["[".repeat(1 << 20) + &"]".repeat(1 << 20), format!("\"{}\"", "é".repeat(1 << 20))] {
            let response = shown("application/json", body);
            assert!(response.is_cut);
            assert!(response.text().len() < TEXT_BYTES_MAX + 1_000, "{}", response.text().len());
        }
        let form = shown("application/x-www-form-urlencoded", "a=1&".repeat(FIELDS_MAX + 1));
        assert!(form.is_cut);
    }

    #[test]
    fn h56_of_a_body_that_was_not_kept_it_is_said_what_a_retry_gets() {
        let response = ResponseShown::of(&StoredResponse::NotKept(Some(StatusCode::OK)));
        assert_eq!(
            response.what_a_retry_gets(),
            "The response was not stored. A retry gets 409 with code outcome_not_kept (original_status 200) and does not run again."
        );
    }
}
