//! A connection that writes what it is given, byte for byte, and reads one answer at a time.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

pub use crate::answer::Answer;
use crate::answer::{Ending, line, read_chunk};
use crate::buffered::Buffered;
use crate::request::Request;
use crate::wait::soon;

/// Longer than any answer takes here, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goodbye {
    /// In order: it has no more to say (FIN).
    Fin,
    /// At once: whatever is on its way is thrown away (RST).
    Reset,
}

/// A connection of HTTP/1.1. What starts with `try_` returns errors; everything else panics, as a test wants it.
pub struct Client<S = TcpStream>(Buffered<S>);

impl Client {
    /// Connects.
    pub async fn try_connect(to: SocketAddr) -> Result<Self> {
        let stream = timeout(PATIENCE, TcpStream::connect(to)).await.context("connecting takes too long")?;
        Self::over_tcp(stream.with_context(|| format!("cannot connect to {to}"))?)
    }

    /// Connects from another address of this machine.
    pub async fn try_connect_from(from: IpAddr, to: SocketAddr) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0)).with_context(|| format!("cannot come from {from}"))?;
        let stream = timeout(PATIENCE, socket.connect(to)).await.context("connecting takes too long")?;
        Self::over_tcp(stream.with_context(|| format!("cannot connect to {to}"))?)
    }

    /// Connects.
    pub async fn connect(to: SocketAddr) -> Self {
        Self::try_connect(to).await.expect("connects")
    }

    /// Connects from another address of this machine.
    pub async fn connect_from(from: impl Into<IpAddr>, to: SocketAddr) -> Self {
        Self::try_connect_from(from.into(), to).await.expect("connects")
    }

    fn over_tcp(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self(Buffered::new(stream)))
    }

    /// One half reads while the other writes.
    pub fn split(self) -> (Client<OwnedReadHalf>, Writing) {
        let (reading, writing) = self.0.reader.into_split();
        (Client(Buffered::new(reading)), Writing(writing))
    }

    /// Ends the connection as a client does that was killed: at once, and without a word.
    pub fn reset(self) {
        self.0.reader.set_zero_linger().expect("is a socket");
    }

    /// Leaves.
    pub async fn hang_up(mut self, goodbye: Goodbye) {
        match goodbye {
            Goodbye::Reset => drop(self.0.reader.set_zero_linger()),
            // It may be closed already.
            Goodbye::Fin => drop(self.0.reader.shutdown().await),
        }
    }
}

/// The half that writes.
pub struct Writing(OwnedWriteHalf);

impl Writing {
    /// Writes all of it.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("is written");
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// Over a stream that is there.
    pub fn over(stream: S) -> Self {
        Self(Buffered::new(stream))
    }

    /// The stream itself.
    pub fn stream(&mut self) -> &mut S {
        &mut self.0.reader
    }

    /// Writes all of it.
    pub async fn try_write(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.0.reader.write_all(bytes).await?)
    }

    /// One request, and its answer, whole.
    pub async fn try_ask(&mut self, request: &[u8]) -> Result<Answer> {
        self.try_write(request).await?;
        self.try_answer().await
    }

    /// Writes all of it.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        soon("room to write", self.0.reader.write_all(bytes.as_ref())).await.expect("is written");
    }

    /// Writes, even though the other side may be gone: reading finds that out.
    pub async fn write_if_open(&mut self, bytes: impl AsRef<[u8]>) {
        let _gone = soon("room to write", self.0.reader.write_all(bytes.as_ref())).await;
    }

    /// Writes a request and reads its answer, whole.
    pub async fn ask(&mut self, request: &str) -> Answer {
        self.write(request).await;
        self.answer(!request.starts_with("HEAD ")).await.expect("is answered")
    }

    /// Sends a request and reads its answer, as far as it comes.
    pub async fn send(&mut self, request: &Request) -> Answer {
        self.write_if_open(request.bytes()).await;
        self.answer_to(&request.method).await.expect("is answered")
    }

    /// Says that nothing more is written; the other side may be gone.
    pub async fn half_close(&mut self) {
        let _gone = self.0.reader.shutdown().await;
    }
}

impl<S: AsyncRead + Unpin> Client<S> {
    /// Over a half that only reads.
    pub fn reading(half: S) -> Self {
        Self(Buffered::new(half))
    }

    /// The next answer after interim ones, whole.
    pub async fn try_answer(&mut self) -> Result<Answer> {
        let read = Answer::read_final(&mut self.0, "GET");
        match timeout(PATIENCE, read).await.context("no answer came")? {
            Some(answer) if answer.is_whole() => Ok(answer),
            answer => bail!("the connection ended within an answer: {answer:?}"),
        }
    }

    /// The next answer after interim ones, whole; of a stream of events, the head.
    pub(crate) async fn read(&mut self, method: &str) -> Result<Answer> {
        loop {
            let mut answer = Answer::read_head(&mut self.0).await.context("the connection ended")?;
            if (100..200).contains(&answer.status) {
                continue;
            }
            if answer.media_type() == "text/event-stream" {
                return Ok(answer);
            }
            answer.read_body(&mut self.0, method).await;
            ensure!(answer.is_whole(), "the connection ended within an answer: {answer:?}");
            return Ok(answer);
        }
    }

    /// So many bytes, or fewer if the connection ends or goes quiet before.
    pub async fn try_bytes(&mut self, count: usize) -> Vec<u8> {
        while self.0.ahead().len() < count {
            if !timeout(PATIENCE, self.0.more()).await.is_ok_and(|read| read.is_ok_and(|count| count > 0)) {
                break;
            }
        }
        self.0.exactly(count.min(self.0.ahead().len())).await
    }

    /// The next answer after interim ones, as far as it comes; `None` if the connection ended before its head did.
    pub async fn answer_to(&mut self, method: &str) -> Option<Answer> {
        soon("an answer", Answer::read_final(&mut self.0, method)).await
    }

    /// The next answer, whole, interim ones included; `None` if the connection ended before the answer did.
    pub async fn answer(&mut self, has_body: bool) -> Option<Answer> {
        let mut answer = self.head().await?;
        let method = if has_body { "GET" } else { "HEAD" };
        soon("a body", answer.read_body(&mut self.0, method)).await;
        Some(answer).filter(|answer| answer.ending != Ending::CutShort)
    }

    /// The head of the next answer.
    pub async fn head(&mut self) -> Option<Answer> {
        soon("a head", Answer::read_head(&mut self.0)).await.filter(|head| head.status != 0)
    }

    /// The next chunk; `Some(None)` for the last, before its trailers.
    pub async fn chunk(&mut self) -> Option<Option<Vec<u8>>> {
        soon("a chunk", read_chunk(&mut self.0, &mut Vec::new())).await
    }

    /// The next line, without its end; `None` if the connection ended.
    pub async fn line(&mut self) -> Option<String> {
        soon("a line", line(&mut self.0)).await
    }

    /// The next bytes, this many of them; `None` if the connection ended before.
    pub async fn bytes(&mut self, length: usize) -> Option<Vec<u8>> {
        let bytes = soon("bytes", self.0.exactly(length)).await;
        (bytes.len() == length).then_some(bytes)
    }

    /// Everything up to and with these bytes; `None` if they do not come before the end.
    pub async fn up_to(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        soon("bytes", self.0.up_to(end)).await
    }

    /// Whether the connection has ended, without another byte.
    pub async fn has_ended(&mut self) -> bool {
        let ended = self.is_closed_within(PATIENCE).await;
        assert!(ended || !self.0.ahead().is_empty(), "the connection stays open");
        ended
    }

    /// Whether the other side closed the connection, having sent no more; waits until it has, or until the span is over.
    pub async fn is_closed_within(&mut self, span: Duration) -> bool {
        if !self.0.ahead().is_empty() {
            return false;
        }
        match timeout(span, self.0.more()).await {
            Ok(read) => !read.is_ok_and(|count| count > 0),
            Err(_) => false,
        }
    }

    /// Reads until nothing comes for this long: what came, and whether the connection ended.
    pub async fn drain(&mut self, quiet: Duration) -> (Vec<u8>, bool) {
        loop {
            let more = timeout(quiet, self.0.more()).await;
            if !matches!(more, Ok(Ok(1..))) {
                let came = self.0.exactly(self.0.ahead().len()).await;
                return (came, more.is_ok());
            }
        }
    }
}
