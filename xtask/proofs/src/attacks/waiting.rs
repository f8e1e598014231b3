//! A crowd waits for one key to be settled: all of them are told at once, and nobody else is.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_http::{Answer, Client, Server};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::attacks::race::{self, Step};
use crate::attacks::{ask, limits};

/// Longer than anything takes here, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(50);
/// What each that waits may cost the server, and what it may need beside.
const BYTES_EACH_MAX: u64 = 64 << 10;
const BYTES_BESIDE_MAX: u64 = 32 << 20;
const MIB: u64 = 1 << 20;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// How many waited.
    pub waiting: usize,
    /// When the last of them was told, counted from the answer to the complete.
    pub latest: Duration,
    /// When the one in the middle was told.
    pub median: Duration,
    /// The server's memory before, and at most, in bytes.
    pub memory: (u64, u64),
    /// The control: how long somebody waited for a key that nobody settled.
    pub control: Duration,
}

impl Waited {
    /// Fails if the last one was told later than this.
    pub fn within(self, most: Duration) -> Result<Self> {
        let (waiting, latest) = (self.waiting, self.latest.as_millis());
        ensure!(self.latest <= most, "the last of {waiting} was told {latest} ms after the completion");
        Ok(self)
    }
}

impl fmt::Display for Waited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waiting, latest, median, memory: (before, most), control } = self;
        write!(
            f,
            "{waiting} waited for one key: told within {:.1} ms of its completion, half of them within {:.1} ms; memory {} MiB before, \
             {} MiB at most; who waited for another key was told after {:.1} s that it runs",
            latest.as_secs_f64() * 1e3,
            median.as_secs_f64() * 1e3,
            before / MIB,
            most / MIB,
            control.as_secs_f64()
        )
    }
}

/// So many wait for one key on the binary's claim server, on this store.
pub fn waiting(binary: &Path, store: &str, count: usize, step: Step<'_>) -> Result<Waited> {
    limits::raise(count)?;
    let server = Server::start(binary, store, &[])?;
    race::runtime()?.block_on(attack(&server, count, step))
}

async fn attack(server: &Server, count: usize, step: Step<'_>) -> Result<Waited> {
    let address = server.address;
    let (name, other) = (ask::new_key("awaited"), ask::new_key("not-settled"));
    let permit = claim(address, &name).await?;
    claim(address, &other).await?;
    let (before, _) = server.memory()?;
    let (sent, mut all_sent) = watch::channel(0);
    let mut waiters = JoinSet::new();
    for _ in 0..count {
        let (request, sent) = (wait_for(&name, "60s"), sent.clone());
        waiters.spawn(async move {
            let mut connection = Client::try_connect(address).await?;
            connection.try_write(&request).await?;
            sent.send_modify(|sent| *sent += 1);
            let answer = timeout(PATIENCE, connection.try_answer()).await.context("nobody was told")??;
            anyhow::Ok((answer, Instant::now()))
        });
    }
    let control = tokio::spawn(not_woken(address, wait_for(&other, "3s")));
    timeout(PATIENCE, all_sent.wait_for(|sent| *sent == count)).await??;
    // What was sent must also be read; nobody is told of that.
    sleep(Duration::from_secs(1)).await;
    let completed_at = complete(address, &permit).await?;
    let mut late = Vec::new();
    while let Some(told) = waiters.join_next().await {
        let (answer, told_at) = told??;
        ensure!(is_done(&answer), "somebody who waited got {} {}", answer.status, text(&answer));
        late.push(told_at.saturating_duration_since(completed_at));
        step();
    }
    late.sort_unstable();
    let (latest, median) =
        (late.last().copied().unwrap_or_default(), late.get(count / 2).copied().unwrap_or_default());
    let (_, most) = server.memory()?;
    let most_allowed = before + BYTES_BESIDE_MAX + BYTES_EACH_MAX * count as u64;
    ensure!(most <= most_allowed, "memory went from {} to {} MiB", before / MIB, most / MIB);
    Ok(Waited { waiting: count, latest, median, memory: (before, most), control: control.await?? })
}

/// Who waits for a key that nobody settles must not be told anything before the end of the wait.
async fn not_woken(address: SocketAddr, request: Vec<u8>) -> Result<Duration> {
    let started_at = Instant::now();
    let answer = Client::try_connect(address).await?.try_ask(&request).await?;
    let waited = started_at.elapsed();
    ensure!(
        !is_done(&answer) && waited >= Duration::from_millis(2_900),
        "the control was not caught: who waited for a key that nobody settled was told after {waited:?}: {}",
        text(&answer)
    );
    Ok(waited)
}

fn wait_for(name: &str, span: &str) -> Vec<u8> {
    format!("GET /v1/record?operation=charge&name={name}&wait={span} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        .into_bytes()
}

async fn claim(address: SocketAddr, name: &str) -> Result<String> {
    let body = format!(r#"{{"operation":"charge","name":"{name}","lease_ms":600000}}"#);
    let answer = Client::try_connect(address).await?.try_ask(&post("/v1/claim", &body)).await?;
    let told = text(&answer);
    let permit = told.split_once("\"permit\":\"").and_then(|(_, rest)| rest.split_once('"'));
    permit
        .map(|(permit, _)| permit.to_owned())
        .with_context(|| format!("a claim got {} {told}", answer.status))
}

/// Completes it, and says when the answer came.
async fn complete(address: SocketAddr, permit: &str) -> Result<Instant> {
    let body = format!(r#"{{"permit":"{permit}","outcome":{{"json":{{"paid":true}}}}}}"#);
    let answer = Client::try_connect(address).await?.try_ask(&post("/v1/complete", &body)).await?;
    ensure!(text(&answer).contains("\"done\""), "the complete got {} {}", answer.status, text(&answer));
    Ok(Instant::now())
}

/// A JSON request as bytes.
pub(super) fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn is_done(answer: &Answer) -> bool {
    answer.status == 200 && text(answer).contains("\"state\":\"done\"")
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}
