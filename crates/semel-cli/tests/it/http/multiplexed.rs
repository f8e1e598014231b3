//! A client of HTTP/2, without asking first.

use std::net::SocketAddr;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use test_http::{Answer, Ending, Request, soon};
use tokio::net::TcpStream;

/// A connection of HTTP/2.
pub(crate) struct Multiplexed {
    sender: SendRequest<Full<Bytes>>,
}

impl Multiplexed {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self::built(address, &Builder::new(TokioExecutor::new())).await
    }

    /// A connection on which each stream takes this many bytes of a body, and never more.
    pub(crate) async fn with_window(address: SocketAddr, bytes: u32) -> Self {
        Self::built(address, Builder::new(TokioExecutor::new()).initial_stream_window_size(bytes)).await
    }

    async fn built(address: SocketAddr, builder: &Builder<TokioExecutor>) -> Self {
        let stream = soon("a connection", TcpStream::connect(address)).await.expect("the front accepts");
        let shaken = soon("a handshake", builder.handshake(TokioIo::new(stream))).await;
        let (sender, connection) = shaken.expect("speaks HTTP/2");
        tokio::spawn(connection);
        Self { sender }
    }

    /// Sends a request and reads the head of its response, and nothing of its body.
    pub(crate) fn send_unread(
        &self,
        ask: &Request,
    ) -> impl Future<Output = axum::http::Response<Incoming>> + Send + 'static {
        let (mut sender, request) = (self.sender.clone(), for_http2(ask));
        async move { soon("an answer", sender.send_request(request)).await.expect("there is an answer") }
    }

    /// Sends a request and reads its response; dropped before, the request is called off.
    pub(crate) fn send(&self, ask: &Request) -> impl Future<Output = Answer> + Send + 'static {
        let (mut sender, request) = (self.sender.clone(), for_http2(ask));
        async move {
            let response = soon("an answer", sender.send_request(request)).await.expect("there is an answer");
            let (head, body) = response.into_parts();
            let text =
                |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
            let (headers, body) = (headers.collect(), soon("its body", body.collect()).await);
            let body = body.expect("is whole").to_bytes().to_vec();
            Answer { status: head.status.as_u16(), headers, body, ending: Ending::Whole, ..Answer::default() }
        }
    }
}

/// The same request for HTTP/2, which frames bodies and names hosts in its own way.
fn for_http2(request: &Request) -> axum::http::Request<Full<Bytes>> {
    let (hosts, headers): (Vec<_>, Vec<_>) =
        request.headers.iter().partition(|(name, _)| name.eq_ignore_ascii_case("host"));
    // The one that the same request over HTTP/1.1 names.
    let host = hosts.first().map_or("service.test".into(), |(_, host)| String::from_utf8_lossy(host));
    let uri = format!("http://{host}{}", request.target);
    let mut built = axum::http::Request::builder().method(&*request.method).uri(uri);
    for (name, value) in headers {
        built = built.header(name, value.as_slice());
    }
    built.body(Full::new(Bytes::from(request.body.clone().unwrap_or_default()))).expect("is a request")
}
