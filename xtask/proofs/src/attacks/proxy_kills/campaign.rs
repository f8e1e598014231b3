//! The campaign: kills under load, then what every client got, and what the service did.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_http::{Proxy, Upstream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::client::{Ended, ProxyAddress, charge, charge_on};
use super::shop::Shop;
use crate::attacks::race::{self, Step};

/// How many clients charge all the time.
const CLIENTS: usize = 24;
/// Much longer than a charge takes, so that no charge is still to come when its lease has lapsed.
const LEASE: &str = "[rules]\nlease = \"1s\"\n";
const PROBE: &str = "probe = { path = \"/charges?key={key}\", headers = [\"authorization\"] }\n";
const RERUN: &str = "lapse = \"rerun\"\n";
/// How many kills the control has at most: it takes a few to see two effects.
const CONTROL_KILLS_MAX: usize = 20;

/// What came of it.
#[derive(Clone, Debug)]
pub struct ProxyKills {
    /// With a probe.
    pub probed: Seen,
    /// Without one, by the defaults.
    pub held: Seen,
    /// The control: without a probe, and with `lapse = "rerun"`.
    pub rerun: Seen,
}

/// What was seen after some kills.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// How often the proxy was killed.
    pub kills: usize,
    /// How many keys there were.
    pub keys: usize,
    /// How many of them were sent more than once.
    pub retried: usize,
    /// How many had one effect, and their clients the answer to it.
    pub once: usize,
    /// How many were held for a person at last.
    pub held: usize,
    /// How many had more than one effect.
    pub twice: usize,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, keys, retried, once, held, twice } = self;
        write!(
            f,
            "{kills} kills, {keys} keys ({retried} sent more than once), {once} with one effect and one answer, {held} held, \
             {twice} with two effects"
        )
    }
}

impl fmt::Display for ProxyKills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { probed, held, rerun } = self;
        write!(f, "with a probe: {probed}; without one: {held}; control, lapse = \"rerun\": {rerun}")
    }
}

/// Kills the binary's proxy so many times with a probe, and so many times without one.
pub fn proxy_kills(binary: &Path, count: usize, step: Step<'_>) -> Result<ProxyKills> {
    race::runtime()?.block_on(async {
        let probed = campaign(binary, &format!("{LEASE}{PROBE}"), count, step).await?;
        ensure!(
            probed.once == probed.keys,
            "with a probe, not every client ended with one effect and one answer: {probed}"
        );
        let held = campaign(binary, LEASE, count, step).await?;
        ensure!(held.twice == 0, "without a probe, a key had two effects: {held}");
        ensure!(held.once + held.held == held.keys, "a client has an answer that no effect explains: {held}");
        let rerun = campaign(binary, &format!("{LEASE}{RERUN}"), count.min(CONTROL_KILLS_MAX), step).await?;
        ensure!(rerun.twice > 0, "the control was not caught: {rerun}");
        Ok(ProxyKills { probed, held, rerun })
    })
}

async fn campaign(binary: &Path, rules: &str, count: usize, step: Step<'_>) -> Result<Seen> {
    let (shop, folder) = (Shop::default(), tempfile::tempdir()?);
    let upstream = shop.open().await;
    let store = format!("file:{}", folder.path().join("store").display());
    let (moved, address) = watch::channel(None::<SocketAddr>);
    let (over, is_over) = watch::channel(false);
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(charge_on(address.clone(), is_over.clone()));
    }
    let mut proxy = start(binary, &upstream, &store, rules, &moved).await?;
    for _ in 0..count {
        sleep(Duration::from_millis(rand::random_range(10..150))).await;
        proxy.kill()?;
        proxy = start(binary, &upstream, &store, rules, &moved).await?;
        step();
    }
    over.send_replace(true);
    let mut ended = Vec::new();
    while let Some(client) = clients.join_next().await {
        ended.extend(client?.context("a client gave up")?);
    }
    judged(&shop, &address, &ended, count).await
}

async fn start(
    binary: &Path,
    upstream: &Upstream,
    store: &str,
    rules: &str,
    moved: &watch::Sender<Option<SocketAddr>>,
) -> Result<Proxy> {
    let proxy = Proxy::start(binary, upstream.address, store, rules).await?;
    moved.send_replace(Some(proxy.address));
    Ok(proxy)
}

/// Compares what each client was answered with what the service did, and with what the key is answered once more.
async fn judged(shop: &Shop, address: &ProxyAddress, ended: &[Ended], kills: usize) -> Result<Seen> {
    let mut seen = Seen { kills, keys: ended.len(), ..Seen::default() };
    for one in ended {
        let made = shop.charges(&one.key).made;
        seen.retried += usize::from(one.sent > 1);
        seen.twice += usize::from(made > 1);
        if one.code.as_deref() == Some("outcome_held") {
            seen.held += 1;
            continue;
        }
        let again = charge(address, one.key.clone()).await?;
        let is_same = again.status == one.status && again.body == one.body;
        let is_answer = (200..300).contains(&one.status) && one.body.ends_with(b"\"number\":1}");
        seen.once += usize::from(made == 1 && is_same && is_answer);
    }
    Ok(seen)
}
