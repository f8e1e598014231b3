//! The service under test: the app under the layer, and the upstream behind the proxy. Its paths say what it is to do.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use test_http::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

use super::responses::{big, broken, headers, hop_by_hop, settled};

/// A service that counts its calls. Clones are handles to the same one.
#[derive(Clone, Default)]
pub(crate) struct Service {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    calls: Mutex<Vec<Call>>,
    cut_off: AtomicUsize,
    revoked: Mutex<HashSet<String>>,
    gates: Mutex<HashMap<String, watch::Sender<bool>>>,
}

/// A request as the service saw it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// Empty until all of it was read.
    pub(crate) body: Bytes,
    /// The attempt of its permit, under the layer.
    pub(crate) attempt: Option<u32>,
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("is text"))
    }
}

/// Notes a call that was dropped before its end.
struct Watched(Service, bool);

impl Service {
    pub(crate) fn router(&self) -> Router {
        Router::new().fallback(serve).with_state(self.clone())
    }

    /// What it answers, without a connection.
    pub(crate) async fn respond(&self, request: Request) -> Response {
        serve(State(self.clone()), request).await
    }

    /// Every call so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.inner.calls.lock().expect("nobody panicked").clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.calls().len()
    }

    /// How many calls had this text as their key header.
    pub(crate) fn count_of(&self, key: &str) -> usize {
        self.calls().iter().filter(|call| call.header("idempotency-key") == Some(key)).count()
    }

    #[track_caller]
    pub(crate) fn last(&self) -> Call {
        self.calls().pop().expect("there was a call")
    }

    /// How many calls were dropped before they came to an end.
    pub(crate) fn cut_off(&self) -> usize {
        self.inner.cut_off.load(Ordering::Acquire)
    }

    /// Waits until there were this many calls.
    pub(crate) async fn until_called(&self, times: usize) {
        until(&format!("{times} calls"), async || (self.count() >= times).then_some(())).await;
    }

    /// Lets everybody through who waits at this gate, and everybody who comes.
    pub(crate) fn open(&self, gate: &str) {
        self.gate(gate).send_replace(true);
    }

    /// Whoever says this of itself has no rights any more.
    pub(crate) fn revoke(&self, authorization: &str) {
        self.inner.revoked.lock().expect("nobody panicked").insert(authorization.to_owned());
    }

    /// It has them again.
    pub(crate) fn pardon(&self, authorization: &str) {
        self.inner.revoked.lock().expect("nobody panicked").remove(authorization);
    }

    /// Who it is, if it has any rights.
    pub(crate) fn authenticated(&self, headers: &HeaderMap) -> Option<String> {
        let authorization = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let revoked = self.inner.revoked.lock().expect("nobody panicked");
        (!revoked.contains(authorization)).then(|| authorization.to_owned())
    }

    fn gate(&self, name: &str) -> watch::Sender<bool> {
        let mut gates = self.inner.gates.lock().expect("nobody panicked");
        gates.entry(name.to_owned()).or_insert_with(|| watch::channel(false).0).clone()
    }

    async fn pass(&self, gate: &str) {
        let mut open = self.gate(gate).subscribe();
        open.wait_for(|open| *open).await.expect("gates stay");
    }

    /// Notes a call, and says its number.
    fn arrived(&self, request: &Request) -> usize {
        let attempt = request.extensions().get::<semel::Permit>().map(semel::Permit::attempt);
        let mut calls = self.inner.calls.lock().expect("nobody panicked");
        calls.push(Call {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
            body: Bytes::new(),
            attempt,
        });
        calls.len()
    }

    fn read(&self, number: usize, body: &Bytes) {
        self.inner.calls.lock().expect("nobody panicked")[number - 1].body = body.clone();
    }
}

async fn serve(State(service): State<Service>, request: Request) -> Response {
    let number = service.arrived(&request);
    let mut watched = Watched(service.clone(), false);
    let answer = answer(&service, number, request).await;
    watched.1 = true;
    answer
}

async fn answer(service: &Service, number: usize, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let kind = request.headers().get(header::CONTENT_TYPE).cloned();
    match parts[..] {
        ["early", status] => return (status_of(status), format!("call {number}")).into_response(),
        ["guarded"] => return guarded(service, number, request.headers()),
        ["upgrade"] => return upgraded(request),
        _ => {}
    }
    let Ok(body) = axum::body::to_bytes(request.into_body(), usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    service.read(number, &body);
    match parts[..] {
        ["status", status] => (status_of(status), format!("call {number}")).into_response(),
        ["empty", status] => status_of(status).into_response(),
        ["echo"] => {
            let mut echo = body.into_response();
            if let Some(kind) = kind {
                echo.headers_mut().insert(header::CONTENT_TYPE, kind);
            }
            echo
        }
        ["gate", gate] => {
            service.pass(gate).await;
            (StatusCode::CREATED, format!("call {number}")).into_response()
        }
        ["turns"] => {
            service.pass(&format!("turn-{number}")).await;
            (StatusCode::CREATED, format!("call {number}")).into_response()
        }
        ["fails-first", gate] => {
            service.pass(gate).await;
            let status = if number == 1 { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::CREATED };
            (status, format!("call {number}")).into_response()
        }
        ["headers"] => headers(number),
        ["hop"] => hop_by_hop(number),
        ["big", bytes] => big(bytes.parse().expect("a number")).into_response(),
        ["halves", gate] => halves(service, gate, number, "text/plain"),
        ["sse", gate] => halves(service, gate, number, "text/event-stream"),
        ["broken"] => broken(),
        ["settle", word, status] => settled(word, status_of(status), number),
        // The quiet way to panic: no message on the test's output.
        ["panic"] => std::panic::resume_unwind(Box::new("told to")),
        ["panics-first"] if number == 1 => std::panic::resume_unwind(Box::new("told to")),
        _ => (StatusCode::CREATED, format!("call {number}")).into_response(),
    }
}

fn guarded(service: &Service, number: usize, headers: &HeaderMap) -> Response {
    match service.authenticated(headers) {
        Some(who) => (StatusCode::CREATED, format!("call {number} for {who}")).into_response(),
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}

fn status_of(word: &str) -> StatusCode {
    word.parse().expect("a status")
}

/// One half of a body, and the other one when the gate opens.
fn halves(service: &Service, gate: &str, number: usize, kind: &'static str) -> Response {
    let (service, gate) = (service.clone(), gate.to_owned());
    let first =
        stream::once(async move { Ok::<_, Infallible>(Bytes::from(format!("data: call {number}\n\n"))) });
    let second = stream::once(async move {
        service.pass(&gate).await;
        Ok(Bytes::from_static(b"data: the end\n\n"))
    });
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(first.chain(second))).into_response()
}

/// Speaks another protocol from here on: whatever comes is sent back.
fn upgraded(mut request: Request) -> Response {
    tokio::spawn(async move {
        let Ok(upgraded) = hyper::upgrade::on(&mut request).await else { return };
        let mut io = hyper_util::rt::TokioIo::new(upgraded);
        let mut bytes = [0; 64];
        while let Ok(count) = io.read(&mut bytes).await {
            if count == 0 || io.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    });
    let headers = [(header::CONNECTION, "upgrade"), (header::UPGRADE, "echo")];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.1 {
            self.0.inner.cut_off.fetch_add(1, Ordering::AcqRel);
        }
    }
}
