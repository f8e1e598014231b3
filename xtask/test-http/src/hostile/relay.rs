//! The control: a relay that decodes chunks and passes on the length that it found. It must be caught.

use std::fmt::Write as _;
use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::buffered::Buffered;
use crate::client::Client;

/// A running relay. Dropped, it is gone.
pub struct Relay {
    /// Where it listens.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Relay {
    /// Relays requests to this service.
    pub async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("has an address");
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, upstream));
            }
        });
        Self { address, task }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn relay(client: TcpStream, upstream: SocketAddr) -> Option<()> {
    let mut client = Buffered::new(client);
    loop {
        let mut request = client.up_to(b"\r\n\r\n").await?;
        if request.starts_with(b"POST") {
            request.extend(client.exactly(2).await);
        }
        let answer = Client::try_connect(upstream).await.ok()?.try_ask(&request).await.ok()?;
        let mut head = format!("HTTP/1.1 {} Relayed\r\n", answer.status);
        for (name, value) in answer.headers.iter().filter(|(name, _)| name != "transfer-encoding") {
            write!(head, "{name}: {value}\r\n").ok()?;
        }
        if answer.first("content-length").is_none() {
            write!(head, "Content-Length: {}\r\n", answer.body.len()).ok()?;
        }
        head.push_str("\r\n");
        client.reader.write_all(&[head.as_bytes(), &answer.body].concat()).await.ok()?;
    }
}
