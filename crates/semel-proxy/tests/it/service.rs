//! Services behind the proxy: one that is scripted byte by byte, and one that tells what it was asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A service, and how often somebody connected to it.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Service {
    /// Every connection is one run of the script.
    pub(crate) async fn scripted<F, R>(script: F) -> Self
    where
        F: Fn(Line) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("has an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(script(Line(stream)));
            }
        });
        Self { address, connections, task }
    }

    /// Answers every request with its own head and body, as text.
    pub(crate) async fn mirror() -> Self {
        Self::routed(Router::new().fallback(mirrored)).await
    }

    pub(crate) async fn routed(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("has an address");
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("serves");
        });
        Self { address, connections: Arc::default(), task }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn mirrored(request: Request) -> String {
    let (parts, body) = request.into_parts();
    let shown = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        format!("{name}: {}\n", value.to_str().expect("is text"))
    };
    let headers: Vec<_> = parts.headers.iter().map(shown).collect();
    let body = to_bytes(Body::new(body), 1 << 20).await.expect("is whole");
    let body = std::str::from_utf8(&body).expect("is text");
    format!("{} {} {:?}\n{}\n{body}", parts.method, parts.uri, parts.version, headers.concat())
}

/// One connection of a scripted service.
pub(crate) struct Line(pub(crate) TcpStream);

impl Line {
    /// Reads a head, up to and with its empty line; empty if the other side left.
    pub(crate) async fn head(&mut self) -> String {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match self.0.read(&mut byte).await {
                Ok(1) => head.push(byte[0]),
                _ => return String::new(),
            }
        }
        String::from_utf8(head).expect("is text")
    }

    pub(crate) async fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).await.expect("come");
        bytes
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("is written");
    }
}
