//! A client that writes what it is told, byte for byte, and reads one answer at a time.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// No answer of these tests takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection of HTTP/1.1.
pub(crate) struct Client<S = TcpStream>(BufReader<S>);

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// As they came, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("is text")
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("connects");
        stream.set_nodelay(true).expect("is set");
        Self(BufReader::new(stream))
    }

    /// One half reads while the other writes.
    pub(crate) fn split(self) -> (Client<OwnedReadHalf>, Writing) {
        let (reading, writing) = self.0.into_inner().into_split();
        (Client(BufReader::new(reading)), Writing(writing))
    }
}

/// The half that writes.
pub(crate) struct Writing(OwnedWriteHalf);

impl Writing {
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("is written");
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self(BufReader::new(stream))
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("is written");
    }

    /// Writes a request and reads its answer.
    pub(crate) async fn ask(&mut self, request: &str) -> Answer {
        self.write(request).await;
        self.answer(!request.starts_with("HEAD ")).await.expect("is answered")
    }

    /// Says that nothing more is written.
    pub(crate) async fn half_close(&mut self) {
        self.0.shutdown().await.expect("is shut");
    }
}

impl<S: AsyncRead + Unpin> Client<S> {
    /// The next line, without its end; `None` if the connection ended.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.0.read_line(&mut line)).await.expect("comes in time");
        read.is_ok_and(|length| length > 0).then(|| line.trim_end().to_owned())
    }

    /// The next bytes, this many of them; `None` if the connection ended before.
    pub(crate) async fn bytes(&mut self, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        let read = timeout(PATIENCE, self.0.read_exact(&mut bytes)).await.expect("come in time");
        read.is_ok().then_some(bytes)
    }

    /// Whether the connection has ended, without another byte.
    pub(crate) async fn has_ended(&mut self) -> bool {
        let mut byte = [0];
        matches!(timeout(PATIENCE, self.0.read(&mut byte)).await.expect("ends in time"), Ok(0) | Err(_))
    }

    /// The head of the next answer.
    pub(crate) async fn head(&mut self) -> Option<Answer> {
        let line = self.line().await?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let headers = self.headers().await?;
        Some(Answer { status, headers, body: Vec::new(), trailers: Vec::new() })
    }

    /// The next answer, whole; `None` if the connection ended before the answer did.
    pub(crate) async fn answer(&mut self, has_body: bool) -> Option<Answer> {
        let mut answer = self.head().await?;
        if !has_body || matches!(answer.status, 204 | 304 | 100..200) {
            return Some(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await? {
                answer.body.extend(chunk);
            }
            answer.trailers = self.headers().await?;
        } else if let Some(length) = answer.header("content-length") {
            answer.body = self.bytes(length.parse().ok()?).await?;
        } else {
            timeout(PATIENCE, self.0.read_to_end(&mut answer.body)).await.expect("comes in time").ok()?;
        }
        Some(answer)
    }

    /// The next chunk; `Some(None)` for the last, before its trailers.
    pub(crate) async fn chunk(&mut self) -> Option<Option<Vec<u8>>> {
        let length = usize::from_str_radix(&self.line().await?, 16).ok()?;
        if length == 0 {
            return Some(None);
        }
        let bytes = self.bytes(length).await?;
        self.line().await?;
        Some(Some(bytes))
    }

    async fn headers(&mut self) -> Option<Vec<(String, String)>> {
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(':') else { return line.is_empty().then_some(headers) };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}
