//! `kill -9` of the proxy while requests run, and another proxy on the same store after it.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_http::{Answer, Client, HANG, Ledger, Proxy, Upstream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::attacks::ask::{self, Framing};
use crate::attacks::race::{self, Step};

/// Short, so that a round does not take long; the proxy renews it at a third.
const LEASE: Duration = Duration::from_millis(1_500);
/// A lease that was renewed just before the end of its holder is good for this long at least.
const LEASE_LEFT_MIN: Duration = Duration::from_millis(900);
/// How much longer than the lease a retry may take.
const SLACK: Duration = Duration::from_secs(3);
const BETWEEN_ASKS: Duration = Duration::from_millis(20);
/// How long to wait for something that takes no time.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many keys are done before each kill.
const DONE: usize = 10;
/// How many clients ask all the time until the kill.
const BUSY: usize = 8;
const WORK: Duration = Duration::from_millis(3);
const CALLER: &str = "caller-of-the-killed";

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Killed {
    /// How often the proxy was killed.
    pub kills: usize,
    /// How many acknowledged outcomes were replayed afterwards.
    pub replayed: usize,
    /// How many runs that died were run again, each after its lease.
    pub reran: usize,
    /// How many were held.
    pub held: usize,
    /// How long the longest retry took to run again after the kill.
    pub recovered_after: Duration,
    /// The control: how many of so many done keys a store that forgets ran again.
    pub forgotten: (usize, usize),
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, replayed, reran, held, recovered_after, forgotten: (forgotten, of) } = self;
        write!(
            f,
            "killed {kills} times: {replayed} acknowledged outcomes were replayed, {reran} dead runs ran again (lease {} ms, \
             at most {} ms after the kill), {held} were held; on the memory store {forgotten} of {of} done keys ran again",
            LEASE.as_millis(),
            recovered_after.as_millis()
        )
    }
}

/// Kills the binary's proxy so many times.
pub fn kill(binary: &Path, count: usize, step: Step<'_>) -> Result<Killed> {
    race::runtime()?.block_on(async {
        let folder = tempfile::tempdir()?;
        let store = format!("file:{}", folder.path().join("store").display());
        let mut killed = Killed::default();
        for _ in 0..count {
            round(binary, &store, &mut killed).await?;
            killed.kills += 1;
            step();
        }
        killed.forgotten = control(binary).await?;
        Ok(killed)
    })
}

async fn round(binary: &Path, store: &str, killed: &mut Killed) -> Result<()> {
    let upstream = Upstream::counting(WORK).await;
    let ledger = &upstream.ledger;
    let proxy = start(binary, &upstream, store).await?;
    let done = done(proxy.address, DONE).await?;
    let running = [rerun_path(), hold_path()].map(|path| (path, ask::new_key("killed")));
    for (path, key) in &running {
        leave_running(proxy.address, path, key).await?;
        begun(ledger, key).await?;
    }
    let clients: Vec<_> = (0..BUSY).map(|_| busy(proxy.address)).collect();
    sleep(Duration::from_millis(rand::random_range(5..150))).await;
    proxy.kill()?;
    let killed_at = Instant::now();
    let mut asked = Vec::new();
    for client in clients {
        asked.extend(client.await?);
    }
    let proxy = start(binary, &upstream, store).await?;
    killed.replayed += replays(proxy.address, ledger, &done).await?;
    for (path, key) in &running {
        recover(proxy.address, ledger, path, key, killed_at, killed).await?;
    }
    killed.replayed += after_load(proxy.address, ledger, &asked, killed_at, killed).await?;
    Ok(())
}

async fn start(binary: &Path, upstream: &Upstream, store: &str) -> Result<Proxy> {
    let lease = LEASE.as_millis();
    let rules = format!(
        "[rules]\nlease = \"{lease}ms\"\nlapse = \"rerun\"\n[[route]]\npath = \"{HANG}/hold\"\nlapse = \"hold\"\n[timeouts]\nresponse = \"60s\"\n"
    );
    Proxy::start(binary, upstream.address, store, &rules).await
}

fn rerun_path() -> String {
    format!("{HANG}/rerun")
}

fn hold_path() -> String {
    format!("{HANG}/hold")
}

fn request(path: &str, key: &str) -> Vec<u8> {
    ask::charge(path, CALLER, key, Framing::Length)
}

async fn ask(target: SocketAddr, path: &str, key: &str) -> Result<Answer> {
    Client::try_connect(target).await?.try_ask(&request(path, key)).await
}

/// Keys whose outcomes were acknowledged, with them.
async fn done(target: SocketAddr, count: usize) -> Result<Vec<(String, Vec<u8>)>> {
    let mut done = Vec::new();
    for _ in 0..count {
        let key = ask::new_key("done");
        let answer = ask(target, "/charges", &key).await?;
        ensure!(answer.status == 201, "a first request got {} {:?}", answer.status, answer.code());
        done.push((key, answer.body));
    }
    Ok(done)
}

/// A request that is never answered; its client waits in vain.
async fn leave_running(target: SocketAddr, path: &str, key: &str) -> Result<()> {
    let mut connection = Client::try_connect(target).await?;
    connection.try_write(&request(path, key)).await?;
    tokio::spawn(async move { drop(connection.try_answer().await) });
    Ok(())
}

async fn begun(ledger: &Ledger, key: &str) -> Result<()> {
    let started_at = Instant::now();
    while ledger.begun(key) == 0 {
        ensure!(started_at.elapsed() < PATIENCE, "{key} never reached the service");
        sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// A client that asks under one key after the other until the proxy is gone: every key, and what was acknowledged.
fn busy(target: SocketAddr) -> JoinHandle<Vec<(String, Option<Vec<u8>>)>> {
    tokio::spawn(async move {
        let mut asked = Vec::new();
        loop {
            let key = ask::new_key("load");
            let answer = ask(target, "/charges", &key).await.ok();
            let is_last = answer.is_none();
            asked.push((key, answer.filter(|answer| answer.status == 201).map(|answer| answer.body)));
            if is_last {
                return asked;
            }
        }
    })
}

/// Every acknowledged outcome is replayed, and was called for once.
async fn replays(target: SocketAddr, ledger: &Arc<Ledger>, done: &[(String, Vec<u8>)]) -> Result<usize> {
    for (key, body) in done {
        let answer = ask(target, "/charges", key).await?;
        let calls = ledger.calls(key).len();
        ensure!(
            answer.is_replay() && answer.body == *body && calls == 1,
            "{key} was acknowledged; after the kill it got {} (replay: {}), and was called for {calls} times",
            answer.status,
            answer.is_replay()
        );
    }
    Ok(done.len())
}

/// What was asked while the proxy died: acknowledged ones replay; others end, with a second call only after the lease.
async fn after_load(
    target: SocketAddr,
    ledger: &Arc<Ledger>,
    asked: &[(String, Option<Vec<u8>>)],
    killed_at: Instant,
    killed: &mut Killed,
) -> Result<usize> {
    let acknowledged =
        asked.iter().filter_map(|(key, body)| Some((key.clone(), body.clone()?))).collect::<Vec<_>>();
    let replayed = replays(target, ledger, &acknowledged).await?;
    for (key, _) in asked.iter().filter(|(_, body)| body.is_none()) {
        let answer = insist(target, "/charges", key).await?;
        ensure!(answer.status == 201, "{key} got {} {:?} at last", answer.status, answer.code());
        killed.reran += usize::from(second_after_lease(ledger, key, killed_at)?.is_some());
    }
    Ok(replayed)
}

/// When the second call began after the kill, if there was one: never before the lease was over.
fn second_after_lease(ledger: &Ledger, key: &str, killed_at: Instant) -> Result<Option<Duration>> {
    let calls = ledger.calls(key);
    ensure!(calls.len() <= 2, "{key} was called for {} times", calls.len());
    for pair in calls.windows(2) {
        let [first, second] = pair else { continue };
        let ended_at = first.ended_at.with_context(|| format!("{key}: two calls at once"))?;
        ensure!(ended_at <= second.began_at, "{key}: two calls at once");
        let after = second.began_at.duration_since(killed_at);
        ensure!(
            after >= LEASE_LEFT_MIN,
            "{key} ran again {} ms after the kill, within its lease",
            after.as_millis()
        );
        return Ok(Some(after));
    }
    Ok(None)
}

/// Asks until it is told something else than that it is running; the last that it was told.
async fn insist(target: SocketAddr, path: &str, key: &str) -> Result<Answer> {
    let started_at = Instant::now();
    loop {
        let answer = ask(target, path, key).await?;
        let is_running = answer.status == 409 && answer.code().as_deref() == Some("in_flight");
        if !is_running || started_at.elapsed() > PATIENCE {
            return Ok(answer);
        }
        sleep(BETWEEN_ASKS).await;
    }
}

/// A run that died: run again after its lease, or held.
async fn recover(
    target: SocketAddr,
    ledger: &Arc<Ledger>,
    path: &str,
    key: &str,
    killed_at: Instant,
    killed: &mut Killed,
) -> Result<()> {
    if path == hold_path() {
        let answer = insist(target, path, key).await?;
        ensure!(
            answer.code().as_deref() == Some("outcome_held"),
            "{key} got {} {:?}",
            answer.status,
            answer.code()
        );
        ensure!(ledger.calls(key).len() == 1, "{key} is held, and was called for again");
        killed.held += 1;
        return Ok(());
    }
    // The second run is not answered either: it is enough that it began.
    let key = key.to_owned();
    let retrying = tokio::spawn({
        let (path, key) = (path.to_owned(), key.clone());
        async move { drop(insist(target, &path, &key).await) }
    });
    let after = loop {
        if let Some(after) = second_after_lease(ledger, &key, killed_at)? {
            break after;
        }
        ensure!(killed_at.elapsed() < LEASE + SLACK + PATIENCE, "{key} never ran again");
        sleep(Duration::from_millis(5)).await;
    };
    retrying.abort();
    ensure!(after < LEASE + SLACK, "{key} ran again only {} ms after the kill", after.as_millis());
    killed.recovered_after = killed.recovered_after.max(after);
    killed.reran += 1;
    Ok(())
}

/// The memory store forgets: done keys run again, and that must be seen.
async fn control(binary: &Path) -> Result<(usize, usize)> {
    let upstream = Upstream::counting(WORK).await;
    let proxy = start(binary, &upstream, "memory:").await?;
    let done = done(proxy.address, DONE).await?;
    proxy.kill()?;
    let proxy = start(binary, &upstream, "memory:").await?;
    ensure!(
        replays(proxy.address, &upstream.ledger, &done).await.is_err(),
        "the control was not caught: a store that forgets replayed"
    );
    for (key, _) in &done {
        ask(proxy.address, "/charges", key).await?;
    }
    let twice = done.iter().filter(|(key, _)| upstream.ledger.calls(key).len() > 1).count();
    Ok((twice, done.len()))
}
