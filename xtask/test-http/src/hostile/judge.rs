//! What clients see of a hostile upstream through a proxy, and whether that is right.
//!
//! - A client's connection stays in step: the next request on it gets its own answer, or the connection ends.
//! - A body that is seen whole is exactly what the framing means.
//! - With a key: what was answered as a success is replayed, byte for byte; what nobody knows does not run again.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::case::{Means, Version, When};
use super::upstream::HostileUpstream;
use crate::client::Client;
use crate::frames::{self, Frame};

/// Longer than any time-out of the proxy.
const PATIENCE: Duration = Duration::from_secs(30);

/// Who tries it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What the client speaks.
    pub client: Version,
    /// The key of its request.
    pub key: Option<String>,
}

/// What a client saw of an answer.
#[derive(Clone, PartialEq, Eq)]
enum Seen {
    /// All of it.
    Whole(Vec<u8>),
    /// A refusal of the proxy's own, with its code.
    Refused(String),
    /// Something that is visibly not whole, or the end of the connection.
    Broken(Vec<u8>),
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
        match self {
            Self::Whole(body) => write!(f, "all of {:?}", text(body)),
            Self::Refused(code) => write!(f, "the refusal {code}"),
            Self::Broken(body) => write!(f, "a broken {:?}", text(body)),
        }
    }
}

impl Seen {
    fn of(body: Vec<u8>, is_whole: bool) -> Self {
        if !is_whole {
            return Self::Broken(body);
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        let code = text.split_once("\"code\":\"").and_then(|(_, rest)| rest.split_once('"'));
        code.map_or(Self::Whole(body), |(code, _)| Self::Refused(code.to_owned()))
    }

    /// Whether it is a good answer with a number of its own.
    fn is_good(&self) -> bool {
        matches!(self, Self::Whole(body) if body.starts_with(b"answer "))
    }
}

/// What is wrong with what a client saw; empty if nothing is.
pub async fn faults(upstream: &HostileUpstream, proxy: SocketAddr, tried: &Tried) -> Vec<String> {
    let case = upstream.case();
    upstream.arm();
    let method = if case.is_head { "HEAD" } else { "POST" };
    let mut line = Line::connect(proxy, tried.client).await;
    let first = line.ask(method, tried.key.as_deref()).await;
    let next = line.ask("GET", None).await;
    let mut faults = Vec::new();
    // What is sent before it is asked for goes to whoever asks first on that connection, and is its own.
    let is_own = |seen: &Seen| {
        let is_early = case.when == When::AtOnce
            && matches!((&case.means, seen), (Means::Body(means), Seen::Whole(body)) if body == means);
        seen.is_good() || is_early
    };
    let is_right = match (&case.means, &first) {
        _ if case.when == When::AtOnce && is_own(&first) => true,
        (Means::Body(means) | Means::Must(means), Seen::Whole(body)) => body == means,
        (Means::Nothing, Seen::Whole(_)) | (Means::Must(_), Seen::Refused(_) | Seen::Broken(_)) => false,
        (_, Seen::Refused(_) | Seen::Broken(_)) => true,
    };
    if !is_right {
        faults.push(format!("means {}, and the client saw {first:?}", case.means));
    }
    if !is_own(&next) && matches!(next, Seen::Whole(_)) {
        faults.push(format!("the next request on the connection got {next:?}"));
    }
    if tried.key.is_some() {
        let again = Line::connect(proxy, tried.client).await.ask(method, tried.key.as_deref()).await;
        faults.extend(wrong_retry(&first, &again));
    }
    let mut alive = Line::connect(proxy, Version::Http1).await.ask("GET", None).await;
    if !is_own(&alive) {
        // A connection of HTTP/2 to the upstream that hangs is known to hang once a request has waited for it.
        alive = Line::connect(proxy, Version::Http1).await.ask("GET", None).await;
    }
    if !is_own(&alive) {
        faults.push(format!("afterwards the proxy answered {alive:?}"));
    }
    let told = |fault| format!("{} ({:?} client, key {:?}): {fault}", case.name, tried.client, tried.key);
    faults.into_iter().map(told).collect()
}

fn wrong_retry(first: &Seen, again: &Seen) -> Option<String> {
    let is_right = match (first, again) {
        (Seen::Whole(first), Seen::Whole(again)) => first == again,
        // A success must be known, and what was cut off is no success that could be replayed whole.
        (Seen::Whole(_), Seen::Refused(_) | Seen::Broken(_)) | (Seen::Broken(_), Seen::Whole(_)) => false,
        (Seen::Refused(code), Seen::Whole(_)) => code == "upstream_unreachable" && again.is_good(),
        (Seen::Refused(_) | Seen::Broken(_), Seen::Refused(_) | Seen::Broken(_)) => true,
    };
    (!is_right).then(|| format!("first {first:?}, and the retry got {again:?}"))
}

/// A client's connection, of either HTTP.
enum Line {
    Http1(Client),
    Http2 { stream: TcpStream, next: u32 },
}

impl Line {
    async fn connect(to: SocketAddr, version: Version) -> Self {
        match version {
            Version::Http1 => Self::Http1(Client::connect(to).await),
            Version::Http2 => {
                let mut stream = TcpStream::connect(to).await.expect("connects");
                stream.set_nodelay(true).expect("is set");
                let start =
                    [frames::PREFACE.as_slice(), &frames::frame(frames::SETTINGS, 0, 0, &[])].concat();
                stream.write_all(&start).await.expect("is written");
                Self::Http2 { stream, next: 1 }
            }
        }
    }

    async fn ask(&mut self, method: &str, key: Option<&str>) -> Seen {
        let seen = match self {
            Self::Http1(client) => timeout(PATIENCE, ask_http1(client, method, key)).await,
            Self::Http2 { stream, next } => {
                let id = *next;
                *next += 2;
                timeout(PATIENCE, ask_http2(stream, id, method, key)).await
            }
        };
        seen.unwrap_or_else(|_| Seen::Whole(b"nothing for half a minute".to_vec()))
    }
}

async fn ask_http1(client: &mut Client, method: &str, key: Option<&str>) -> Seen {
    let key = key.map_or(String::new(), |key| format!("Idempotency-Key: {key}\r\n"));
    let (length, body) = if method == "POST" { ("Content-Length: 2\r\n", "hi") } else { ("", "") };
    let request =
        format!("{method} /charge HTTP/1.1\r\nHost: a\r\nAuthorization: t\r\n{key}{length}\r\n{body}");
    client.write_if_open(request).await;
    match client.answer_to(method).await {
        Some(answer) => Seen::of(answer.body.clone(), answer.is_whole()),
        None => Seen::Broken(Vec::new()),
    }
}

async fn ask_http2(line: &mut TcpStream, id: u32, method: &str, key: Option<&str>) -> Seen {
    let mut fields = vec![
        (":method", method),
        (":scheme", "http"),
        (":authority", "a"),
        (":path", "/charge"),
        ("authorization", "t"),
    ];
    fields.extend(key.map(|key| ("idempotency-key", key)));
    fields.extend((method == "POST").then_some(("content-length", "2")));
    let request = if method == "POST" {
        [frames::headers(id, &fields, 0), frames::frame(frames::DATA, frames::END_STREAM, id, b"hi")].concat()
    } else {
        frames::headers(id, &fields, frames::END_STREAM)
    };
    let mut body = Vec::new();
    if line.write_all(&request).await.is_err() {
        return Seen::Broken(body);
    }
    while let Some(frame) = Frame::read(line).await {
        if frame.is(frames::DATA, id) {
            body.extend_from_slice(&frame.payload);
        }
        if frame.stream == id && frame.ends_stream() {
            return Seen::of(body, true);
        }
        if frame.is(frames::RST_STREAM, id) {
            break;
        }
        if frame.is(frames::SETTINGS, 0) && frame.flags & frames::ACK == 0 {
            // It may be gone by now, which the next read tells.
            let _ = line.write_all(&frames::frame(frames::SETTINGS, frames::ACK, 0, &[])).await;
        }
    }
    Seen::Broken(body)
}
