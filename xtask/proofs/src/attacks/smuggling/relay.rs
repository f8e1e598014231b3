//! The control: a relay that trusts lengths and passes bytes on as they are. It must be caught.

use std::net::SocketAddr;

use anyhow::Result;
use test_http::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A running relay. Dropped, it is gone.
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Relay {
    pub(super) async fn start(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, upstream));
            }
        });
        Ok(Self { address, task })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn relay(mut client: TcpStream, upstream: SocketAddr) -> Result<()> {
    let mut line = Client::try_connect(upstream).await?;
    let mut ahead = Vec::new();
    loop {
        let request = loop {
            if let Some(length) = length(&ahead).filter(|length| *length <= ahead.len()) {
                break ahead.drain(..length).collect::<Vec<_>>();
            }
            if client.read_buf(&mut ahead).await? == 0 {
                return Ok(());
            }
        };
        let answer = line.try_ask(&request).await?;
        let saw = answer.first("saw").unwrap_or_default();
        let head = format!(
            "HTTP/1.1 {} Relayed\r\nSaw: {saw}\r\nContent-Length: {}\r\n\r\n",
            answer.status,
            answer.body.len()
        );
        client.write_all(head.as_bytes()).await?;
        client.write_all(&answer.body).await?;
    }
}

/// How long the first request is, as its length says.
fn length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|here| here == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(bytes.get(..end)?).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    Some(end + length.unwrap_or(0_usize))
}
