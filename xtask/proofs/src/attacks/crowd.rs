//! A crowd asks at once under one key, through two proxies on one store: one of them is served, and the others know.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_http::{Answer, Client, Ledger, Proxy, Upstream};
use tokio::sync::Barrier;

use crate::attacks::ask::{self, Framing};
use crate::attacks::race::{self, Step};

/// How long the service takes: some come while it works, and some after.
const WORK: Duration = Duration::from_millis(20);
const CALLER: &str = "caller-of-crowds";

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crowded {
    /// How many asked at once.
    pub crowd: usize,
    /// Under how many keys, one after the other.
    pub keys: usize,
    /// How many were replayed to.
    pub replayed: usize,
    /// How many were told that it is running.
    pub busy: usize,
    /// The control: how many calls one key came to on two stores.
    pub calls_apart: usize,
}

impl fmt::Display for Crowded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crowd, keys, replayed, busy, calls_apart } = self;
        write!(
            f,
            "{crowd} at once through two proxies, {keys} keys: one call each; {replayed} replays, {busy} were told that it \
             is running; on two stores one key was called for {calls_apart} times"
        )
    }
}

/// So many clients at once under each of so many keys, through two processes of the binary on one store.
pub fn crowd(binary: &Path, store: &str, crowd: usize, keys: usize, step: Step<'_>) -> Result<Crowded> {
    migrate(binary, store)?;
    race::runtime()?.block_on(async {
        let upstream = Upstream::counting(WORK).await;
        let proxies = [
            Proxy::start(binary, upstream.address, store, "").await?,
            Proxy::start(binary, upstream.address, store, "").await?,
        ];
        let mut crowded = Crowded { crowd, keys, ..Crowded::default() };
        for _ in 0..keys {
            let asked = ask_at_once(proxies.each_ref().map(|proxy| proxy.address), crowd).await?;
            let (replayed, busy) = asked.judge(&upstream.ledger)?;
            crowded.replayed += replayed;
            crowded.busy += busy;
            step();
        }
        crowded.calls_apart = control(binary, crowd).await?;
        Ok(crowded)
    })
}

/// Two proxies that know nothing of each other must be caught.
async fn control(binary: &Path, crowd: usize) -> Result<usize> {
    let upstream = Upstream::counting(WORK).await;
    let proxies = [
        Proxy::start(binary, upstream.address, "memory:", "").await?,
        Proxy::start(binary, upstream.address, "memory:", "").await?,
    ];
    let asked = ask_at_once(proxies.each_ref().map(|proxy| proxy.address), crowd).await?;
    ensure!(
        asked.judge(&upstream.ledger).is_err(),
        "the control was not caught: two stores were as good as one"
    );
    Ok(upstream.ledger.calls(&asked.key).len())
}

fn migrate(binary: &Path, store: &str) -> Result<()> {
    let mut command = Command::new(binary);
    command.args(["migrate", "--store", store]).env_remove("SEMEL_STORE").stdin(Stdio::null());
    let done = command.output().with_context(|| format!("cannot start {}", binary.display()))?;
    ensure!(done.status.success(), "`semel migrate` failed: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// What everybody was told under one key.
struct Asked {
    key: String,
    answers: Vec<Answer>,
}

async fn ask_at_once(targets: [SocketAddr; 2], crowd: usize) -> Result<Asked> {
    let key = ask::new_key("crowd");
    let gate = Arc::new(Barrier::new(crowd));
    let request: Arc<[u8]> = ask::charge("/charges", CALLER, &key, Framing::Length).into();
    let one = |target: SocketAddr| {
        let (gate, request) = (Arc::clone(&gate), Arc::clone(&request));
        async move {
            // Connected first: only the requests race.
            let connection = Client::try_connect(target).await;
            gate.wait().await;
            connection?.try_ask(&request).await
        }
    };
    let work = targets.iter().cycle().take(crowd).map(|target| one(*target));
    let answers = race::all(crowd, work, &|| ()).await?.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(Asked { key, answers })
}

impl Asked {
    /// One call; everybody has its outcome, or was told that it is running. How many of each, beside the one that ran.
    fn judge(&self, ledger: &Ledger) -> Result<(usize, usize)> {
        let calls = ledger.calls(&self.key);
        ensure!(calls.len() == 1, "{}: called {} times", self.key, calls.len());
        let outcome = calls.first().map(|call| format!("{{\"call\":{},", call.serial)).unwrap_or_default();
        let (mut ran, mut replayed, mut busy) = (0, 0, 0);
        for answer in &self.answers {
            let code = answer.code();
            let has_outcome = answer.status == 201 && answer.body.starts_with(outcome.as_bytes());
            match (answer.status, answer.is_replay()) {
                (201, false) if has_outcome => ran += 1,
                (201, true) if has_outcome => replayed += 1,
                (409, _) if code.as_deref() == Some("in_flight") => busy += 1,
                (status, _) => anyhow::bail!("{}: somebody got {status} {code:?}", self.key),
            }
        }
        ensure!(ran == 1, "{}: {ran} were told that they ran", self.key);
        Ok((replayed, busy))
    }
}
