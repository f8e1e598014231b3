//! A client of HTTP/2, without asking first.

use std::net::SocketAddr;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::answer::{Answer, Ending};
use super::ask::Ask;
use super::patience::soon;

/// A connection of HTTP/2.
pub(crate) struct Multiplexed {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
}

impl Multiplexed {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = soon("a connection", TcpStream::connect(address)).await.expect("the front accepts");
        let shaken = soon("a handshake", handshake(TokioExecutor::new(), TokioIo::new(stream))).await;
        let (sender, connection) = shaken.expect("speaks HTTP/2");
        tokio::spawn(connection);
        Self { address, sender }
    }

    /// Sends a request and reads its response; dropped before, the request is called off.
    pub(crate) fn send(&self, ask: &Ask) -> impl Future<Output = Answer> + Send + 'static {
        let (mut sender, request) = (self.sender.clone(), ask.request(self.address));
        async move {
            let response = soon("an answer", sender.send_request(request)).await.expect("there is an answer");
            let (head, body) = response.into_parts();
            let headers =
                head.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
            let (headers, body) = (headers.collect(), soon("its body", body.collect()).await);
            let body = body.expect("is whole").to_bytes().to_vec();
            Answer { status: head.status.as_u16(), headers, body, ending: Ending::Whole }
        }
    }
}
