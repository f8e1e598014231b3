//! The service: on every connection one request after the other, each answered with what was seen of it; or a script.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::ledger::{Ledger, Seen};
use super::request::{Read, Request};
use super::strict;
use crate::buffered::Buffered;

/// What a target starts with that is never answered.
pub const HANG: &str = "/hang";
/// What a target starts with that takes its time.
pub const SLOW: &str = "/slow";
/// That time.
const SLOW_FOR: Duration = Duration::from_millis(700);
/// What fills an answer up to the length of a real one.
const FILLING: &str = "a charge of 1999 cents, as agreed; nothing else is owed, and nothing else was done";

/// A running service. Dropped, it is gone.
pub struct Upstream {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it was asked; empty for one that is scripted.
    pub ledger: Arc<Ledger>,
    connections: Arc<AtomicUsize>,
    #[expect(dead_code, reason = "the service ends with it")]
    task: Task,
}

/// What all lines have in common.
struct Desk {
    ledger: Arc<Ledger>,
    /// How long an answer takes.
    delay: Duration,
    /// Whether every request is kept, byte for byte.
    keeps_bytes: bool,
}

impl Upstream {
    /// One that only counts.
    pub async fn counting(delay: Duration) -> Self {
        Self::start(delay, false).await
    }

    /// One that keeps what it saw, too.
    pub async fn recording() -> Self {
        Self::start(Duration::ZERO, true).await
    }

    async fn start(delay: Duration, keeps_bytes: bool) -> Self {
        let ledger = Arc::new(Ledger::default());
        let desk = Arc::new(Desk { ledger: Arc::clone(&ledger), delay, keeps_bytes });
        let upstream = Self::scripted(move |line| Arc::clone(&desk).serve(line.0)).await;
        Self { ledger, ..upstream }
    }

    /// One that runs this script on every connection.
    pub async fn scripted<F, R>(script: F) -> Self
    where
        F: Fn(Line) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let accept = async move |listener: TcpListener| {
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    counted.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(script(Line(stream)));
                }
            }
        };
        Self { connections, ..Self::serving(accept).await }
    }

    /// One that serves as it likes; nothing is recorded.
    pub async fn serving<R>(serve: impl FnOnce(TcpListener) -> R) -> Self
    where
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("has an address");
        let task = Task(tokio::spawn(serve(listener)));
        Self { address, ledger: Arc::default(), connections: Arc::default(), task }
    }

    /// How often somebody connected to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// One connection of a scripted service.
pub struct Line(pub TcpStream);

impl Line {
    /// Reads a head, up to and with its empty line; empty if the other side left.
    pub async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match self.0.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return String::new(),
            }
        }
        String::from_utf8(head).expect("is text")
    }

    /// The next bytes, this many of them.
    pub async fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).await.expect("come");
        bytes
    }

    /// Writes all of it.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("is written");
    }
}

/// A task that ends with its owner.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Desk {
    async fn serve(self: Arc<Self>, stream: TcpStream) {
        // A line that fails is at its end; whoever judges looks at what was seen.
        let _nodelay = stream.set_nodelay(true);
        let (reader, mut writer) = stream.into_split();
        let mut line = Buffered::new(reader);
        while let Some(request) = Request::read(&mut line).await {
            self.ledger.begin(&request);
            let read = request.body(&mut line).await;
            let is_whole = request.is_whole() && read.is_whole;
            self.see(&request, &read, is_whole);
            if !is_whole {
                return;
            }
            let serial = self.ledger.call(&request);
            let is_answered = self.answer(&request, serial, &mut line, &mut writer).await;
            self.ledger.end(&request, serial);
            if !is_answered {
                return;
            }
        }
    }

    fn see(&self, request: &Request, read: &Read, is_whole: bool) {
        if self.keeps_bytes {
            self.ledger.see(Seen {
                target: request.target.clone(),
                body: read.body.clone(),
                is_whole,
                faults: strict::faults(&request.raw, &read.trailers),
                raw: request.raw.clone(),
            });
        }
    }

    async fn answer(
        &self,
        request: &Request,
        serial: u64,
        line: &mut Buffered<OwnedReadHalf>,
        writer: &mut OwnedWriteHalf,
    ) -> bool {
        if request.target.starts_with(HANG) {
            while line.more().await.is_ok_and(|read| read > 0) {}
            return false;
        }
        let delay = if request.target.starts_with(SLOW) { SLOW_FOR } else { self.delay };
        if !delay.is_zero() {
            sleep(delay).await;
        }
        writer.write_all(written(request, serial).as_bytes()).await.is_ok()
    }
}

fn written(request: &Request, serial: u64) -> String {
    let shown = |text: &str| -> String { text.chars().filter(char::is_ascii_graphic).collect() };
    let (method, target) = (shown(&request.method), shown(&request.target));
    let body = format!(
        "{{\"call\":{serial},\"for\":\"{}\",\"what\":\"{FILLING}\"}}",
        target.replace(['"', '\\'], "")
    );
    let length = body.len();
    let mut text = String::from("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n");
    let _ = write!(
        text,
        "Location: /charges/{serial}\r\nSaw: {method} {target}\r\nContent-Length: {length}\r\n\r\n"
    );
    if method != "HEAD" {
        text.push_str(&body);
    }
    text
}
