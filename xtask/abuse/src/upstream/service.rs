//! The service: on every line one request after the other, each answered with what was seen of it.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::ledger::{Ledger, Seen};
use super::request::{Read, Request};
use super::strict;
use crate::wire::Buffered;

/// What a target starts with that is never answered.
pub(crate) const HANG: &str = "/hang";
/// What a target starts with that takes its time.
pub(crate) const SLOW: &str = "/slow";
/// That time.
const SLOW_FOR: Duration = Duration::from_millis(700);
/// What fills an answer up to the length of a real one.
const FILLING: &str = "a charge of 1999 cents, as agreed; nothing else is owed, and nothing else was done";

/// A running service. Dropped, it is gone.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    pub(crate) ledger: Arc<Ledger>,
    task: JoinHandle<()>,
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
    pub(crate) async fn counting(delay: Duration) -> Result<Self> {
        Self::start(delay, false).await
    }

    /// One that keeps what it saw, too.
    pub(crate) async fn recording() -> Result<Self> {
        Self::start(Duration::ZERO, true).await
    }

    async fn start(delay: Duration, keeps_bytes: bool) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let ledger = Arc::new(Ledger::default());
        let desk = Arc::new(Desk { ledger: Arc::clone(&ledger), delay, keeps_bytes });
        let task = tokio::spawn(async move {
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(Arc::clone(&desk).serve(stream));
                }
            }
        });
        Ok(Self { address, ledger, task })
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Desk {
    async fn serve(self: Arc<Self>, stream: TcpStream) {
        // A line that fails is at its end; whoever judges looks at what was seen.
        let _nodelay = stream.set_nodelay(true);
        let (reader, mut writer) = stream.into_split();
        let mut line = Buffered::new(reader);
        while let Ok(Some(request)) = Request::read(&mut line).await {
            self.ledger.begin(&request);
            let read = request.body(&mut line).await;
            let read = read.unwrap_or(Read { body: Vec::new(), trailers: Vec::new(), is_whole: false });
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
