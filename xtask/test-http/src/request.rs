//! A request, and its bytes on the wire.

use serde_json::Value;

use crate::token::Token;

/// The host of a request that goes to a service by no particular name.
const HOST: &str = "service.test";

/// A request of HTTP/1.1. Nothing is added but a host and a length.
#[derive(Clone, Debug)]
pub struct Request {
    /// Such as `POST`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers in their order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// `None`: without a body, and without a length.
    pub body: Option<Vec<u8>>,
}

impl Request {
    /// A request without a body.
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), headers: Vec::new(), body: None }
    }

    /// A GET.
    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    /// A POST with a small body of text.
    pub fn post(target: &str) -> Self {
        Self::new("POST", target).body("a body")
    }

    /// A POST of JSON.
    pub fn json(target: &str, body: &str) -> Self {
        Self::new("POST", target).header("content-type", "application/json").body(body)
    }

    /// A form to be posted, as a browser does.
    pub fn form(target: &str, values: &[(&str, &str)]) -> Self {
        let values = values.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
        let body = values.collect::<Vec<_>>().join("&");
        Self::new("POST", target).header("content-type", "application/x-www-form-urlencoded").body(body)
    }

    /// A POST of a JSON value.
    pub fn post_json(target: &str, body: &Value) -> Self {
        Self::json(target, &body.to_string())
    }

    /// With a key, as nearly every client writes it.
    #[must_use]
    pub fn key(self, key: &str) -> Self {
        self.header("Idempotency-Key", key)
    }

    /// From a caller of this name.
    #[must_use]
    pub fn from(self, caller: &str) -> Self {
        self.header("authorization", &format!("Bearer {caller}"))
    }

    /// From the holder of a token.
    #[must_use]
    pub fn by(self, token: &Token) -> Self {
        self.from(&token.text)
    }

    /// With one more header.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        self.header_bytes(name, value.as_bytes())
    }

    /// With one more header, whatever its bytes.
    #[must_use]
    pub fn header_bytes(mut self, name: &str, value: &[u8]) -> Self {
        self.headers.push((name.to_owned(), value.to_vec()));
        self
    }

    /// With this body, and its length.
    #[must_use]
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: Some(body.into()), ..self }
    }

    /// Without a body, and without a length.
    #[must_use]
    pub fn without_body(self) -> Self {
        Self { body: None, ..self }
    }

    /// The same, from nobody in particular.
    #[must_use]
    pub fn without_caller(&self) -> Self {
        let mut request = self.clone();
        request.headers.retain(|(name, _)| name != "authorization");
        request
    }

    /// With another method.
    #[must_use]
    pub fn method(self, method: &str) -> Self {
        Self { method: method.to_owned(), ..self }
    }

    /// To another target.
    #[must_use]
    pub fn to(self, target: &str) -> Self {
        Self { target: target.to_owned(), ..self }
    }

    /// Whether it has a header of this name.
    pub fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(found, _)| found.eq_ignore_ascii_case(name))
    }

    /// The bytes up to and with the empty line, for this host unless a header names one.
    fn head_for(&self, host: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        let mut add = |name: &str, value: &[u8]| {
            head.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
        };
        if !self.has("host") {
            add("host", host.as_bytes());
        }
        self.headers.iter().for_each(|(name, value)| add(name, value));
        if let Some(body) = &self.body {
            add("content-length", body.len().to_string().as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    /// The bytes up to and with the empty line.
    pub fn head(&self) -> Vec<u8> {
        self.head_for(HOST)
    }

    /// All bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_for(HOST)
    }

    /// All bytes, for this host.
    pub fn bytes_for(&self, host: &str) -> Vec<u8> {
        let mut bytes = self.head_for(host);
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
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
