//! A request, and the bytes that it is on the wire.

use std::net::SocketAddr;

use axum::body::Bytes;
use axum::http::Request;
use http_body_util::Full;

/// A request of HTTP/1.1. Nothing is added but a host and a length.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: String,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<Vec<u8>>,
}

impl Ask {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: None }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// A POST with a small body of text.
    pub(crate) fn post(path: &str) -> Self {
        Self::new("POST", path).body("a body")
    }

    /// A POST of JSON.
    pub(crate) fn json(path: &str, body: &str) -> Self {
        Self::post(path).header("content-type", "application/json").body(body)
    }

    /// With a key, as nearly every client writes it.
    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Idempotency-Key", key)
    }

    /// From a caller of this name.
    pub(crate) fn from(self, caller: &str) -> Self {
        self.header("authorization", &format!("Bearer {caller}"))
    }

    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        self.header_bytes(name, value.as_bytes())
    }

    pub(crate) fn header_bytes(mut self, name: &str, value: &[u8]) -> Self {
        self.headers.push((name.to_owned(), value.to_vec()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Without a body, and without a length.
    pub(crate) fn without_body(mut self) -> Self {
        self.body = None;
        self
    }

    /// The same, from nobody in particular.
    pub(crate) fn without_caller(&self) -> Self {
        let mut ask = self.clone();
        ask.headers.retain(|(name, _)| name != "authorization");
        ask
    }

    pub(crate) fn method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        self
    }

    pub(crate) fn to(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// The same for HTTP/2, which frames bodies and names hosts in its own way.
    pub(crate) fn request(&self, address: SocketAddr) -> Request<Full<Bytes>> {
        let mut request =
            Request::builder().method(&*self.method).uri(format!("http://{address}{}", self.path));
        for (name, value) in &self.headers {
            request = request.header(name, value.as_slice());
        }
        let body = Full::new(Bytes::from(self.body.clone().unwrap_or_default()));
        request.body(body).expect("is a request")
    }

    /// The bytes up to and with the empty line.
    pub(crate) fn head(&self) -> Vec<u8> {
        let mut head =
            format!("{} {} HTTP/1.1\r\nhost: service.test\r\n", self.method, self.path).into_bytes();
        for (name, value) in &self.headers {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        if let Some(body) = &self.body {
            head.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }
}
