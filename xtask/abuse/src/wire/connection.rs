//! A client's end of a line: it sends what it is told, and hangs up as it is told.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::answer::Answer;

/// Longer than any answer takes here, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goodbye {
    /// In order: it has no more to say (FIN).
    Fin,
    /// At once: whatever is on its way is thrown away (RST).
    Reset,
}

/// A client's end of a line.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    /// What was read and belongs to no answer yet.
    ahead: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(to: SocketAddr) -> Result<Self> {
        let stream = timeout(PATIENCE, TcpStream::connect(to)).await.context("connecting takes too long")?;
        Self::over(stream.with_context(|| format!("cannot connect to {to}"))?)
    }

    /// From another address of this machine.
    pub(crate) async fn open_from(from: IpAddr, to: SocketAddr) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0)).with_context(|| format!("cannot come from {from}"))?;
        let stream = timeout(PATIENCE, socket.connect(to)).await.context("connecting takes too long")?;
        Self::over(stream.with_context(|| format!("cannot connect to {to}"))?)
    }

    fn over(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, ahead: Vec::new() })
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// The next answer, all of it.
    pub(crate) async fn answer(&mut self) -> Result<Answer> {
        timeout(PATIENCE, self.whole_answer()).await.context("no answer came")?
    }

    async fn whole_answer(&mut self) -> Result<Answer> {
        loop {
            if let Some(answer) = Answer::first(&self.ahead).filter(|answer| answer.is_whole) {
                self.ahead.drain(..answer.bytes);
                return Ok(answer);
            }
            if self.stream.read_buf(&mut self.ahead).await? == 0 {
                bail!("the line ended after {} bytes of an answer", self.ahead.len());
            }
        }
    }

    /// So many bytes, or fewer if the line ends before.
    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.ahead);
        let mut rest = (&mut self.stream).take(count.saturating_sub(bytes.len()) as u64);
        let _ended = timeout(PATIENCE, rest.read_to_end(&mut bytes)).await;
        bytes
    }

    /// One request, and its answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Answer> {
        self.send(request).await?;
        self.answer().await
    }

    pub(crate) async fn hang_up(mut self, goodbye: Goodbye) {
        match goodbye {
            Goodbye::Reset => drop(self.stream.set_zero_linger()),
            // It may be closed already.
            Goodbye::Fin => drop(self.stream.shutdown().await),
        }
    }
}
