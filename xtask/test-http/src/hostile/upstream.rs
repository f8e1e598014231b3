//! The upstream: it answers the first request after it was armed as its case says, and every other one with a number of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::case::{Bytes, Case, Then, Version, When};
use crate::frames;
use crate::upstream::Upstream;

/// A running hostile upstream. Dropped, it is gone.
pub struct HostileUpstream {
    upstream: Upstream,
    case: Case,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Requests since it was armed.
    asked: AtomicUsize,
    /// Answers ever, each with a number of its own.
    answered: AtomicUsize,
}

impl HostileUpstream {
    /// Listens, and is armed.
    pub async fn start(case: Case) -> Self {
        let state = Arc::new(State::default());
        let (theirs, their_case) = (Arc::clone(&state), case.clone());
        let upstream = Upstream::scripted(move |line| {
            let (state, case) = (Arc::clone(&theirs), their_case.clone());
            async move {
                // An end means that the proxy left, which it may at any time.
                let _ = match case.version {
                    Version::Http1 => serve_http1(line.0, &case, &state).await,
                    Version::Http2 => serve_http2(line.0, &case, &state).await,
                };
            }
        })
        .await;
        Self { upstream, case, state }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.upstream.address
    }

    /// What it sends.
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// The next request is answered as the case says.
    pub(super) fn arm(&self) {
        self.state.asked.store(0, Ordering::SeqCst);
    }
}

impl State {
    /// Whether this request is the one that is answered badly.
    fn is_first(&self) -> bool {
        self.asked.fetch_add(1, Ordering::SeqCst) == 0
    }

    /// The body of a good answer: no two are the same.
    fn good(&self) -> String {
        format!("answer {}", self.answered.fetch_add(1, Ordering::SeqCst))
    }
}

async fn serve_http1(mut line: TcpStream, case: &Case, state: &State) -> Option<()> {
    let Bytes::Plain(bytes) = &case.bytes else { return None };
    if case.when == When::AtOnce && state.is_first() {
        line.write_all(bytes).await.ok()?;
        if case.then == Then::Close {
            return end(line).await;
        }
    }
    loop {
        let is_head = read_request(&mut line).await?;
        if case.when == When::Asked && state.is_first() {
            line.write_all(bytes).await.ok()?;
            if case.then == Then::Close {
                return end(line).await;
            }
        } else {
            let good = state.good();
            let body = if is_head { "" } else { &good };
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", good.len());
            line.write_all(answer.as_bytes()).await.ok()?;
        }
    }
}

/// Closes so that everything written arrives: a socket with unread bytes would be reset.
async fn end(mut line: TcpStream) -> Option<()> {
    line.shutdown().await.ok()?;
    while line.read(&mut [0; 1024]).await.ok()? > 0 {}
    Some(())
}

/// Reads a request with its body: whether it is `HEAD`.
async fn read_request(line: &mut TcpStream) -> Option<bool> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(line.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    line.read_exact(&mut body).await.ok()?;
    Some(head.starts_with("head "))
}

async fn serve_http2(mut line: TcpStream, case: &Case, state: &State) -> Option<()> {
    let Bytes::Frames(bytes) = &case.bytes else { return None };
    frames::accept(&mut line).await?;
    loop {
        let stream = frames::next_request(&mut line).await?;
        if state.is_first() {
            line.write_all(&bytes(stream)).await.ok()?;
            if case.then == Then::Close {
                return end(line).await;
            }
        } else {
            let good = state.good();
            let answer = [
                frames::headers(stream, &[(":status", "200")], 0),
                frames::frame(frames::DATA, frames::END_STREAM, stream, good.as_bytes()),
            ];
            line.write_all(&answer.concat()).await.ok()?;
        }
    }
}
