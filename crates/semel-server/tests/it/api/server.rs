//! A server on a free port, and what its callers ask.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use semel::Semel;
use semel::store::Store;
use semel_server::access::Tokens;
use semel_server::served::Served;
use semel_server::store::{Address, Opened};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

/// A server, which stops when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) served: Arc<Served>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
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
}

/// A store in memory, to be shared by servers.
pub(crate) async fn memory() -> Arc<Opened> {
    let address: Address = "memory:".parse().expect("is an address");
    Arc::new(address.open().await.expect("opens"))
}

impl Server {
    /// Without tokens, on a store of its own.
    pub(crate) async fn start() -> Self {
        Self::on(memory().await, Tokens::none()).await
    }

    pub(crate) async fn on(store: Arc<Opened>, tokens: Tokens) -> Self {
        let semel = Semel::builder_shared(store.store()).build().expect("is fine");
        let served = Arc::new(Served::new(semel, store, "memory:".to_owned(), tokens));
        let router = semel_server::serve::app(Arc::clone(&served));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("has an address");
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("serves");
        });
        Self { address, served, task }
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<hyper::body::Incoming> {
        let stream = TcpStream::connect(self.address).await.expect("is there");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("speaks HTTP");
        tokio::spawn(connection);
        sender.send_request(request).await.expect("answers")
    }

    /// Sends a request and reads its answer to the end.
    pub(crate) async fn ask(&self, request: Request<Full<Bytes>>) -> Answered {
        let response = self.send(request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("is whole").to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("is text");
        Answered { status: parts.status.as_u16(), headers: parts.headers, text }
    }

    pub(crate) async fn post_text(&self, path: &str, body: impl Into<Bytes>) -> Answered {
        let request = Request::post(path)
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .expect("is a request");
        self.ask(request).await
    }

    /// What is decided: a status of 200, and its JSON.
    pub(crate) async fn decide(&self, path: &str, body: &Value) -> Value {
        let answered = self.post_text(path, body.to_string()).await;
        assert_eq!(answered.status, 200, "{path} {body}: {}", answered.text);
        assert_eq!(answered.headers["content-type"], "application/json");
        answered.json()
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        let request = Request::get(path)
            .header("host", self.address.to_string())
            .body(Full::default())
            .expect("is a request");
        self.ask(request).await
    }

    /// The store's own now, so that tests agree with it.
    pub(crate) async fn now(&self) -> semel::clock::Timestamp {
        let store: &dyn Store = &**self.served.store;
        store.load(Vec::new()).await.expect("answers").now
    }
}
