//! A request, as bytes.

use serde_json::Value;

use super::token::Token;

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Such as `POST`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Beside `Host` and `Content-Length`.
    pub fields: Vec<(String, String)>,
    /// Nothing for a request without one.
    pub body: Vec<u8>,
}

impl Ask {
    /// A request without a body.
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), fields: Vec::new(), body: Vec::new() }
    }

    /// A look.
    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    /// A JSON value to be posted.
    pub fn post(target: &str, body: &Value) -> Self {
        let ask = Self::new("POST", target).with("Content-Type", "application/json");
        Self { body: body.to_string().into_bytes(), ..ask }
    }

    /// A form to be posted, as a browser does.
    pub fn form(target: &str, values: &[(&str, &str)]) -> Self {
        let body: Vec<_> =
            values.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let ask = Self::new("POST", target).with("Content-Type", "application/x-www-form-urlencoded");
        Self { body: body.join("&").into_bytes(), ..ask }
    }

    /// With one more field.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// As the holder of a token.
    #[must_use]
    pub fn by(self, token: &Token) -> Self {
        self.with("Authorization", &format!("Bearer {}", token.text))
    }

    pub(super) fn bytes(&self, host: &str) -> Vec<u8> {
        let Self { method, target, fields, body } = self;
        let mut lines = vec![format!("{method} {target} HTTP/1.1")];
        if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            lines.push(format!("Host: {host}"));
        }
        lines.extend(fields.iter().map(|(name, value)| format!("{name}: {value}")));
        if !body.is_empty() || method == "POST" {
            lines.push(format!("Content-Length: {}", body.len()));
        }
        [lines.join("\r\n").as_bytes(), b"\r\n\r\n", body].concat()
    }
}

/// A value as it stands in a query or a form.
pub fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}
