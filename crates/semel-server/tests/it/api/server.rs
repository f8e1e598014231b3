//! A server on a free port, and what its callers ask.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use semel::Semel;
use semel_ops::store_url::{Address, Opened};
use semel_server::access::{TokenDigest, Tokens};
use semel_server::state::AppState;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

/// A server, which stops when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) served: Arc<AppState>,
    /// Sent with every request, if there is one.
    token: Option<String>,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The status and the code of a problem, which must be one.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{}", self.text);
        let json = self.json();
        assert_eq!(json["status"], self.status);
        (self.status, json["code"].as_str().unwrap().to_owned())
    }
}

/// A store in memory, to be shared by servers.
pub(crate) async fn memory() -> Arc<Opened> {
    let address: Address = "memory:".parse().expect("is an address");
    Arc::new(address.open().await.expect("opens"))
}

/// A token of each role for each of these scopes, whose text is `semel_ROLE_SCOPE`.
pub(crate) fn tokens(scopes: &[&str]) -> Tokens {
    let mut text = String::new();
    for scope in scopes {
        for role in ["work", "read", "operate"] {
            let digest = TokenDigest::of(&format!("semel_{role}_{scope}"));
            let limit = if scope.is_empty() { String::new() } else { format!("scope = [\"{scope}\"]\n") };
            let _ = write!(
                text,
                "[[token]]\nname = \"{role}-{scope}\"\ndigest = \"{digest}\"\nrole = \"{role}\"\n{limit}"
            );
        }
    }
    Tokens::parse(&text, "tokens.toml").expect("are tokens")
}

pub(crate) fn claim(name: &str) -> Value {
    json!({"scope": ["acme"], "operation": "charge", "name": name})
}

/// The same object with more members.
pub(crate) fn with(mut object: Value, members: Value) -> Value {
    let (Value::Object(all), Value::Object(more)) = (&mut object, members) else {
        panic!("both are objects")
    };
    all.extend(more);
    object
}

impl Server {
    /// Without tokens, on a store of its own.
    pub(crate) async fn start() -> Self {
        Self::on(memory().await, Tokens::none()).await
    }

    pub(crate) async fn on(store: Arc<Opened>, tokens: Tokens) -> Self {
        let semel = Semel::builder_shared(store.store()).build().expect("is fine");
        Self::serve(AppState::new(semel, store, "memory:".to_owned(), tokens)).await
    }

    pub(crate) async fn serve(served: AppState) -> Self {
        let served = Arc::new(served);
        let app = semel_server::serve::app(Arc::clone(&served));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("has an address");
        let task = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("serves");
        });
        Self { address, served, token: None, task: Some(task) }
    }

    /// The same server, asked with this token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self {
            address: self.address,
            served: Arc::clone(&self.served),
            token: Some(token.to_owned()),
            task: None,
        }
    }

    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>) -> Response<hyper::body::Incoming> {
        let headers = request.headers_mut();
        headers.insert("host", self.address.to_string().parse().unwrap());
        if let Some(token) = &self.token {
            headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        let stream = TcpStream::connect(self.address).await.expect("is there");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("speaks HTTP");
        tokio::spawn(connection);
        sender.send_request(request).await.expect("answers")
    }

    /// Sends a request and reads its answer to the end.
    pub(crate) async fn ask(&self, request: Request<Full<Bytes>>) -> Answered {
        let (parts, body) = self.send(request).await.into_parts();
        let bytes = body.collect().await.expect("is whole").to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("is text");
        Answered { status: parts.status.as_u16(), headers: parts.headers, text }
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answered {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .expect("is a request");
        self.ask(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.method(Method::GET, path).await
    }

    pub(crate) async fn method(&self, method: Method, path: &str) -> Answered {
        let request = Request::builder().method(method).uri(path);
        self.ask(request.body(Full::default()).expect("is a request")).await
    }

    /// What is decided: a status of 200, and its JSON.
    pub(crate) async fn decide(&self, path: &str, body: &Value) -> Value {
        let answered = self.post(path, body.to_string()).await;
        assert_eq!(answered.status, 200, "{path} {body}: {}", answered.text);
        assert_eq!(answered.headers["content-type"], "application/json");
        answered.json()
    }

    pub(crate) async fn look(&self, path: &str) -> Value {
        let answered = self.get(path).await;
        assert_eq!(answered.status, 200, "{path}: {}", answered.text);
        answered.json()
    }

    /// Claims until it is told to run: an earlier run's lease of a millisecond has to lapse first.
    pub(crate) async fn take_over(&self, claim: &Value) -> Value {
        for _ in 0..5_000 {
            let decided = self.decide("/v1/claim", claim).await;
            if decided["decision"] != "busy" {
                return decided;
            }
            tokio::task::yield_now().await;
        }
        panic!("it stays busy")
    }
}
