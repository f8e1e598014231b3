//! A client of our own that sees bytes: most rules are about them.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::answer::{Answer, Ending};
use super::ask::Ask;
use super::patience::soon;

/// A connection to a front, and what was read from it and not yet used.
pub(crate) struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
    is_closed: bool,
}

/// A response's head.
struct Head {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = soon("a connection", TcpStream::connect(address)).await.expect("the front accepts");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, unread: Vec::new(), is_closed: false }
    }

    /// A connection from another address of this machine.
    pub(crate) async fn open_from(from: Ipv4Addr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((from, 0).into()).expect("an address of this machine");
        let stream = soon("a connection", socket.connect(address)).await.expect("the front accepts");
        Self { stream, unread: Vec::new(), is_closed: false }
    }

    /// Nothing more is sent.
    pub(crate) async fn end(&mut self) {
        let _gone = self.stream.shutdown().await;
    }

    /// Ends the connection as a client does that was killed: at once, and without a word.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().expect("a socket");
    }

    /// Sends bytes; the other side may be gone, which is for reading to find out.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let _gone = soon("room to write", self.stream.write_all(bytes)).await;
    }

    /// Sends a request and reads its response.
    pub(crate) async fn send(&mut self, ask: &Ask) -> Answer {
        self.write(&ask.bytes()).await;
        self.answer_to(&ask.method).await.expect("there is an answer")
    }

    /// The next response on this connection; none if it was closed before.
    pub(crate) async fn answer_to(&mut self, method: &str) -> Option<Answer> {
        let head = self.head().await?;
        let (body, ending) = self.body(&head, method).await;
        Some(Answer { status: head.status, headers: head.headers, body, ending })
    }

    /// The head of the next response, as a response that has no body yet.
    pub(crate) async fn answer_head(&mut self) -> Option<Answer> {
        let Head { status, headers } = self.head().await?;
        Some(Answer { status, headers, body: Vec::new(), ending: Ending::CutShort })
    }

    async fn head(&mut self) -> Option<Head> {
        loop {
            let bytes = self.up_to(b"\r\n\r\n").await?;
            let head = parsed(&bytes);
            // An interim response says nothing yet; 101 is the last word.
            if head.status >= 200 || head.status == 101 {
                return Some(head);
            }
        }
    }

    async fn body(&mut self, head: &Head, method: &str) -> (Vec<u8>, Ending) {
        let of = |name: &str| {
            let found = head.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
            found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        };
        if method == "HEAD" || matches!(head.status, 101 | 204 | 304) {
            (Vec::new(), Ending::Whole)
        } else if of("transfer-encoding").is_some_and(|coding| coding == "chunked") {
            self.chunks().await
        } else if let Some(length) = of("content-length") {
            self.bytes(length.parse().expect("a length is a number")).await
        } else {
            while self.more().await {}
            (std::mem::take(&mut self.unread), Ending::Closed)
        }
    }

    async fn chunks(&mut self) -> (Vec<u8>, Ending) {
        let mut body = Vec::new();
        loop {
            let Some(line) = self.up_to(b"\r\n").await else { return (body, Ending::CutShort) };
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            let size = usize::from_str_radix(line.split(';').next().unwrap_or(""), 16);
            let size = size.expect("a chunk starts with its size");
            let (chunk, ending) = self.bytes(size + 2).await;
            if ending == Ending::CutShort {
                body.extend_from_slice(&chunk);
                return (body, ending);
            }
            assert!(chunk.ends_with(b"\r\n"), "a chunk ends with a line");
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                return (body, Ending::Whole);
            }
        }
    }

    /// This many bytes, or what there is before the end.
    async fn bytes(&mut self, count: usize) -> (Vec<u8>, Ending) {
        while self.unread.len() < count {
            if !self.more().await {
                return (std::mem::take(&mut self.unread), Ending::CutShort);
            }
        }
        let rest = self.unread.split_off(count);
        (std::mem::replace(&mut self.unread, rest), Ending::Whole)
    }

    /// Everything up to and with these bytes; none if they do not come before the end.
    pub(crate) async fn up_to(&mut self, needle: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.unread.windows(needle.len()).position(|window| window == needle) {
                let rest = self.unread.split_off(at + needle.len());
                return Some(std::mem::replace(&mut self.unread, rest));
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Whether the other side closed the connection, having sent no more; waits until it has, or until the span is over.
    pub(crate) async fn is_closed_within(&mut self, span: Duration) -> bool {
        match tokio::time::timeout(span, self.more()).await {
            Ok(more) => !more && self.unread.is_empty(),
            Err(_) => false,
        }
    }

    async fn more(&mut self) -> bool {
        if self.is_closed {
            return false;
        }
        let read = soon("more of an answer", self.stream.read_buf(&mut self.unread)).await;
        self.is_closed = !matches!(read, Ok(count) if count > 0);
        !self.is_closed
    }
}

fn parsed(bytes: &[u8]) -> Head {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = String::from_utf8_lossy(lines.next().expect("a head has a line"));
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status line: {first:?}"));
    let headers = lines.filter(|line| !line.is_empty()).map(|line| {
        let at = line.iter().position(|byte| *byte == b':').expect("a header has a colon");
        let (name, value) = line.split_at(at);
        (String::from_utf8_lossy(name).into_owned(), value[1..].trim_ascii().to_vec())
    });
    Head { status, headers: headers.collect() }
}
