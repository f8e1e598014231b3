//! One caller with keys without end: memory is bounded, and others are served.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_http::{Client, Proxy, Upstream};
use tokio::sync::watch;

use crate::attacks::ask::{self, Framing};
use crate::attacks::race::{self, Step};

/// How many connections the caller has.
const LINES: usize = 64;
/// How many of another caller's keys there are meanwhile.
const OTHERS: usize = 200;
/// How many records a caller may have where there is a quota.
const QUOTA: usize = 1_000;
/// What a record may cost the proxy on the memory store, and on the file store; and what it may need beside.
const MEMORY_RECORD_BYTES_MAX: u64 = 1_536;
const FILE_RECORD_BYTES_MAX: u64 = 512;
const BYTES_BESIDE_MAX: u64 = 128 << 20;
const MIB: u64 = 1 << 20;

/// How often each status came.
type Statuses = BTreeMap<u16, usize>;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManyKeys {
    /// On the memory store: how many keys, how the answers were, and the proxy's memory before, halfway and at most.
    pub memory: Flood,
    /// On the file store.
    pub file: Flood,
    /// On the memory store, with a quota.
    pub quota: Flood,
}

/// One flood of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flood {
    /// How many keys.
    pub keys: usize,
    /// How often each status came.
    pub statuses: BTreeMap<u16, usize>,
    /// How often each status came to another caller with new keys, meanwhile.
    pub others: BTreeMap<u16, usize>,
    /// The proxy's memory before, and at most, in bytes.
    pub memory: (u64, u64),
    /// How long it took.
    pub took: Duration,
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, statuses, others, memory: (before, most), took } = self;
        write!(
            f,
            "{keys} keys in {} s, answered {statuses:?}, another caller {others:?}, memory {} MiB before and {} MiB at most",
            took.as_secs(),
            before / MIB,
            most / MIB
        )
    }
}

impl fmt::Display for ManyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, file, quota } = self;
        write!(f, "memory store: {memory}; file store: {file}; with a quota of {QUOTA} records: {quota}")
    }
}

/// So many keys of one caller through the binary's proxy on the memory store, a tenth of them on the file store, and once
/// more with a quota.
pub fn many_keys(binary: &Path, count: usize, step: Step<'_>) -> Result<ManyKeys> {
    ensure!(count > QUOTA, "{count} keys are within the quota of {QUOTA}: take more");
    race::runtime()?.block_on(async {
        let memory = flood(binary, "memory:", "", count, step).await?;
        bounded(&memory, MEMORY_RECORD_BYTES_MAX)?;
        ensure!(
            is_held_back(&memory).is_err(),
            "the control was not caught: without a quota the caller was held back"
        );
        let folder = tempfile::tempdir()?;
        let store = format!("file:{}", folder.path().join("store").display());
        let file = flood(binary, &store, "", on_file(count), step).await?;
        bounded(&file, FILE_RECORD_BYTES_MAX)?;
        served(&file)?;
        let quotas = format!("[quotas]\nrecords = {QUOTA}\n");
        let quota = flood(binary, "memory:", &quotas, over_quota(count), step).await?;
        is_held_back(&quota)?;
        served(&quota)?;
        bounded(&quota, 0)?;
        Ok(ManyKeys { memory, file, quota })
    })
}

/// How many keys it comes to in all.
pub fn keys(count: usize) -> usize {
    count + on_file(count) + over_quota(count)
}

fn on_file(count: usize) -> usize {
    (count / 10).max(100)
}

fn over_quota(count: usize) -> usize {
    (count / 10).max(QUOTA * 3)
}

/// Records cost what they may, and no more.
fn bounded(flood: &Flood, record_bytes_max: u64) -> Result<()> {
    let (before, most) = flood.memory;
    let allowed = before + BYTES_BESIDE_MAX + record_bytes_max * flood.keys as u64;
    ensure!(
        most <= allowed,
        "{} MiB are more than the {} MiB that are allowed: {flood}",
        most / MIB,
        allowed / MIB
    );
    Ok(())
}

/// Another caller is not held back.
fn served(flood: &Flood) -> Result<()> {
    ensure!(
        flood.others.get(&201) == Some(&OTHERS) && flood.others.len() == 1,
        "others were not served: {flood}"
    );
    Ok(())
}

/// A caller over its quota is. What it had in flight when it reached the bound may be beyond it.
fn is_held_back(flood: &Flood) -> Result<()> {
    let of = |status: u16| flood.statuses.get(&status).copied().unwrap_or_default();
    let over = flood.keys.saturating_sub(QUOTA);
    ensure!(over > 0, "{} keys are within the quota of {QUOTA}: nothing is proved", flood.keys);
    let beyond = of(201).saturating_sub(QUOTA);
    let is_held_back = of(201) >= QUOTA && beyond <= LINES && of(429) == over.saturating_sub(beyond);
    ensure!(is_held_back, "the quota of {QUOTA} records did not hold: {flood}");
    Ok(())
}

async fn flood(binary: &Path, store: &str, rules: &str, keys: usize, step: Step<'_>) -> Result<Flood> {
    let upstream = Upstream::counting(Duration::ZERO).await;
    let proxy = Proxy::start(binary, upstream.address, store, rules).await?;
    let target = proxy.address;
    asked(target, "caller-to-warm-up", 100, Arc::default()).await?;
    let (before, _) = proxy.memory()?;
    let started_at = tokio::time::Instant::now();
    let (done, statuses) = counted(target, keys, step).await?;
    let others = done.await??;
    let (_, most) = proxy.memory()?;
    let (called, twice) = upstream.ledger.keys();
    ensure!(twice == 0, "{twice} of {called} keys were called for twice");
    Ok(Flood { keys, statuses, others, memory: (before, most), took: started_at.elapsed() })
}

type Others = tokio::task::JoinHandle<Result<Statuses>>;

/// Floods over several lines; another caller comes when half is done.
async fn counted(target: SocketAddr, keys: usize, step: Step<'_>) -> Result<(Others, Statuses)> {
    let sent = Arc::new(AtomicUsize::new(0));
    let (half, mut is_half) = watch::channel(false);
    let others = tokio::spawn(async move {
        is_half.wait_for(|half| *half).await.context("the flood ended")?;
        asked(target, "caller-beside", OTHERS, Arc::default()).await
    });
    let lines: Vec<_> = (0..LINES)
        .map(|_| tokio::spawn(asked(target, "caller-without-end", keys, Arc::clone(&sent))))
        .collect();
    let mut known = 0;
    while known < keys && !lines.iter().all(tokio::task::JoinHandle::is_finished) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = sent.load(Ordering::Relaxed).min(keys);
        (known..now).for_each(|_| step());
        known = now;
        if known >= keys / 2 {
            half.send_replace(true);
        }
    }
    half.send_replace(true);
    let mut statuses = Statuses::new();
    for line in lines {
        for (status, count) in line.await?? {
            *statuses.entry(status).or_default() += count;
        }
    }
    Ok((others, statuses))
}

/// Asks under one new key after the other until so many were sent, by all that share the count.
async fn asked(
    target: SocketAddr,
    caller: &'static str,
    most: usize,
    sent: Arc<AtomicUsize>,
) -> Result<Statuses> {
    let mut statuses = Statuses::new();
    let mut connection = Client::try_connect(target).await?;
    while sent.fetch_add(1, Ordering::Relaxed) < most {
        let answer = connection
            .try_ask(&ask::charge("/charges", caller, &ask::new_key("many"), Framing::Length))
            .await?;
        *statuses.entry(answer.status).or_default() += 1;
        if answer.status == 429 {
            ensure!(answer.first("retry-after").is_some(), "a 429 does not say when to come again");
        }
        if answer.first("connection").is_some_and(|connection| connection.eq_ignore_ascii_case("close")) {
            connection = Client::try_connect(target).await?;
        }
    }
    Ok(statuses)
}
