//! The servers' settings against what the store promises.

use std::sync::Arc;

use futures_util::future::join_all;
use redis::{Cmd, Value};
use semel::Result;
use semel::clock::Timestamp;
use semel::store::{Finding, Verdict};

use crate::config::invalid;
use crate::connect::{Node, Servers};
use crate::durability::{Durability, Settings};
use crate::error::{Failure, ServerResult};
use crate::reply;

/// How far the clocks of a cluster's masters may be apart, in microseconds, before leases suffer from it.
const CLOCKS_APART_MICROS_MAX: u64 = 250_000;

fn finding(setting: String, found: Option<&str>, wanted: &str, keeps: impl FnOnce(&str) -> bool) -> Finding {
    let verdict = match found {
        None => Verdict::Unreadable,
        Some(found) if keeps(found) => Verdict::Kept,
        Some(_) => Verdict::Broken,
    };
    Finding { setting: setting.into(), found: found.map(Box::from), wanted: wanted.into(), verdict }
}

/// Refuses servers that cannot keep the promise, says in the log what was found, and hands back what survives a crash.
pub(crate) async fn at_connect(servers: &Servers, wanted: Option<Durability>) -> Result<Durability> {
    let mut worst: Option<Durability> = None;
    for node in servers.map().masters() {
        let settings = settings(node).await?;
        refuse(node, &settings)?;
        let found = Durability::found(&settings);
        worst = Some(worst.map_or(found, |worst| worst.min(found)));
    }
    let found = worst.unwrap_or(Durability::Unreadable);
    if let Some(wanted) = wanted
        && found < wanted
    {
        return Err(invalid(format!(
            "this Redis keeps its writes `{found}` and `{wanted}` was asked for; set appendonly and appendfsync, or ask \
             for less"
        )));
    }
    match found {
        Durability::Unreadable => tracing::warn!(
            "semel: Redis does not show its persistence settings, so nothing is known of what survives a crash"
        ),
        Durability::None
        | Durability::Snapshots
        | Durability::SystemDecides
        | Durability::EverySecond
        | Durability::Always => tracing::info!(durability = %found, "semel: connected to Redis"),
    }
    Ok(found)
}

fn refuse(node: &Node, settings: &Settings) -> Result<()> {
    let address = &node.address;
    match settings.maxmemory_policy.as_deref() {
        Some("noeviction") => {}
        Some(policy) => {
            return Err(invalid(format!(
                "Redis at {address} has maxmemory-policy {policy}, which deletes records whose promise still holds; \
                 set it to noeviction, or take a server that is no cache"
            )));
        }
        None => tracing::warn!(%address, "semel: maxmemory-policy cannot be read; see that it is noeviction"),
    }
    if settings.role.as_deref().is_some_and(|role| role != "master") {
        return Err(invalid(format!(
            "Redis at {address} is a replica, and takes no writes; connect to its master, or through its sentinels"
        )));
    }
    Ok(())
}

/// Every setting that matters, on every master.
pub(crate) async fn findings(servers: &Servers, wanted: Option<Durability>) -> Result<Vec<Finding>> {
    let map = servers.map();
    let mut findings = Vec::new();
    for node in map.masters() {
        findings.extend(of_node(node, &settings(node).await?, wanted.unwrap_or(Durability::Always)));
    }
    if servers.is_cluster() {
        findings.push(clocks(map.masters()).await);
    }
    Ok(findings)
}

fn of_node(node: &Node, settings: &Settings, wanted: Durability) -> Vec<Finding> {
    let at = |setting: &str| format!("{setting} at {}", node.address);
    let is = |wanted: &'static str| move |found: &str| found == wanted;
    let found = Durability::found(settings);
    let durability = (found != Durability::Unreadable).then_some(found.as_str());
    let release = settings.release.as_deref();
    vec![
        finding(at("redis_version"), release, "6.2 or newer", |found| number(found) >= Some((6, 2))),
        finding(at("role"), settings.role.as_deref(), "master", is("master")),
        finding(at("maxmemory-policy"), settings.maxmemory_policy.as_deref(), "noeviction", is("noeviction")),
        finding(at("durability"), durability, wanted.as_str(), |_| found >= wanted),
    ]
}

/// The release, in numbers that compare.
fn number(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// How far the masters' clocks are apart: a batch that spans several of them is judged by the latest.
async fn clocks(masters: &[Arc<Node>]) -> Finding {
    let time = redis::cmd("TIME");
    let times = join_all(masters.iter().map(|node| async { reply::time(node.ask_one(&time).await?) })).await;
    let times: Option<Vec<Timestamp>> = times.into_iter().map(ServerResult::ok).collect();
    let apart = times.and_then(|times| {
        let (first, last) = (times.iter().min()?, times.iter().max()?);
        Some(last.since(*first).as_micros())
    });
    let found = apart.map(|apart| format!("{} ms", apart.div_euclid(1_000)));
    finding("clocks of the masters".to_owned(), found.as_deref(), "less than 250 ms apart", |_| {
        apart.is_some_and(|apart| apart < u128::from(CLOCKS_APART_MICROS_MAX))
    })
}

/// What a server says of itself: by its configuration, or where that is not shown by its INFO.
async fn settings(node: &Node) -> ServerResult<Settings> {
    let get = |name: &str| {
        let mut cmd = redis::cmd("CONFIG");
        cmd.arg("GET").arg(name);
        cmd
    };
    let names = ["maxmemory-policy", "appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save"];
    let commands: Vec<Cmd> = names.into_iter().map(get).chain([redis::cmd("INFO")]).collect();
    let mut answers = node.ask(&commands.iter().collect::<Vec<_>>()).await.map_err(Failure::harmless)?;
    let info = answers.pop().unwrap_or(Value::Nil);
    if let Value::ServerError(error) = &info
        && error.code() != "NOPERM"
    {
        return Err(Failure::refused(&node.address, error).harmless());
    }
    let info = reply::text(info).unwrap_or_default();
    let info = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.trim().to_owned())
    };
    let mut values = answers.into_iter().map(config_value);
    let mut value = || values.next().flatten();
    let logged = || info("aof_enabled").map(|on| if on == "1" { "yes" } else { "no" }.to_owned());
    Ok(Settings {
        maxmemory_policy: value().or_else(|| info("maxmemory_policy")),
        appendonly: value().or_else(logged),
        appendfsync: value(),
        syncs_pause: value(),
        save: value(),
        release: info("redis_version"),
        role: info("role"),
    })
}

/// The value in an answer to CONFIG GET; `None` if the server does not show it.
fn config_value(answer: Value) -> Option<String> {
    reply::list(answer, "CONFIG GET").ok()?.into_iter().nth(1).and_then(reply::text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_cannot_be_read_is_neither_kept_nor_broken() {
        let verdict = |found| finding("s".to_owned(), found, "a", |found| found == "a").verdict;
        assert_eq!(verdict(Some("a")), Verdict::Kept);
        assert_eq!(verdict(Some("b")), Verdict::Broken);
        assert_eq!(verdict(None), Verdict::Unreadable);
    }

    #[test]
    fn releases_compare_as_numbers() {
        assert!(number("7.0.15") >= Some((6, 2)) && number("6.10.1") >= Some((6, 2)));
        assert!(number("6.0.9") < Some((6, 2)) && number("unheard-of") < Some((6, 2)));
    }
}
