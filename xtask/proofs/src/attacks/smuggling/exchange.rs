//! What is sent on one connection, and what comes back on it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use test_http::{Answer, Client, Ledger, SLOW, answers};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::frames;
use super::shape::{Before, Shape};
use crate::attacks::ask::{self, Framing};

/// How long nothing must come before the client says that it has no more to send.
const QUIET: Duration = Duration::from_millis(400);
/// How long a connection may then stay open.
const CLOSE: Duration = Duration::from_secs(5);
const CALLER: &str = "caller-of-shapes";

/// What came back.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) answers: Vec<Answer>,
    /// What came after the last whole answer.
    pub(super) rest: Vec<u8>,
    /// Whether the connection was closed, at the latest when the client had no more to send.
    pub(super) is_closed: bool,
    /// The answer to a request on another connection, afterwards.
    pub(super) after: Answer,
}

/// Sends a shape and its probe in one go, and reads all that comes.
pub(super) async fn exchange(target: SocketAddr, ledger: &Ledger, shape: &Shape) -> Result<Exchange> {
    prepare(target, ledger, shape).await?;
    let probe = ask::look(&shape.of("probe"), CALLER);
    let (answers, rest, is_closed) = if shape.is_framed {
        (framed(target, shape).await?, Vec::new(), true)
    } else {
        let (bytes, is_closed) = send(target, [shape.bytes.as_slice(), &probe].concat()).await?;
        let (answers, rest) = answers(&bytes);
        (answers, rest, is_closed)
    };
    let after = Client::try_connect(target).await?.try_ask(&ask::look(&shape.of("after"), CALLER)).await?;
    Ok(Exchange { answers, rest, is_closed, after })
}

/// The same in frames; what came on the shape's stream, and on the probe's. Each may be refused alone.
async fn framed(target: SocketAddr, shape: &Shape) -> Result<Vec<Answer>> {
    let path = shape.of("probe");
    let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "api.test"), (":path", &path)];
    let sent = [frames::start(), shape.bytes.clone(), frames::request(3, &fields, None)].concat();
    let (bytes, _) = send(target, sent).await?;
    Ok([1, 3].into_iter().filter_map(|stream| frames::answer(&bytes, stream)).collect())
}

/// Brings about what happened before.
async fn prepare(target: SocketAddr, ledger: &Ledger, shape: &Shape) -> Result<()> {
    let other = ask::charge(&shape.of("first"), CALLER, &shape.key, Framing::Length);
    match shape.before {
        Before::Nothing => {}
        Before::Done => {
            // A shape that is refused for its length is refused here, too: that is answer enough.
            let mut connection = Client::try_connect(target).await?;
            let _sent = connection.try_write(&shape.bytes).await;
            let _answer = connection.try_answer().await;
        }
        Before::OtherDone => {
            let answer = Client::try_connect(target).await?.try_ask(&other).await?;
            ensure!(answer.status == 201, "{}: the request before it got {}", shape.name, answer.status);
        }
        Before::OtherRunning => {
            let running = ask::charge(&format!("{SLOW}/{}", shape.mark), CALLER, &shape.key, Framing::Length);
            let mut connection = Client::try_connect(target).await?;
            connection.try_write(&running).await?;
            tokio::spawn(async move { drop(connection.try_answer().await) });
            let started_at = Instant::now();
            while ledger.begun(&shape.key) == 0 && started_at.elapsed() < CLOSE {
                sleep(Duration::from_millis(2)).await;
            }
        }
    }
    Ok(())
}

/// Sends all of it and reads what comes, until the connection ends or nothing comes any more; whether it ended.
async fn send(target: SocketAddr, bytes: Vec<u8>) -> Result<(Vec<u8>, bool)> {
    let stream = TcpStream::connect(target).await?;
    stream.set_nodelay(true)?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = Client::reading(reader);
    // Written on the side: who is refused early may be closed before all was sent.
    let writing = tokio::spawn(async move {
        let _sent = timeout(CLOSE, writer.write_all(&bytes)).await;
        writer
    });
    let (mut got, is_ended) = reader.drain(QUIET).await;
    let mut writer = writing.await?;
    if is_ended {
        return Ok((got, true));
    }
    let _closed_already = writer.shutdown().await;
    let (more, is_ended) = reader.drain(CLOSE).await;
    got.extend(more);
    Ok((got, is_ended))
}
