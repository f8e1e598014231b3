//! The servers' settings against what the store promises.

use std::sync::Arc;

use futures_util::future::join_all;
use redis::{Cmd, Value};
use semel::Result;
use semel::clock::Timestamp;
use semel::store::{Finding, Verdict};

use crate::config::{Address, invalid};
use crate::connect::{Node, Servers};
use crate::durability::{Durability, Settings};
use crate::error::{Failure, ServerResult};
use crate::names::Names;
use crate::{reply, script};

/// How far the clocks of a cluster's masters may be apart, in microseconds, before leases suffer from it.
const CLOCKS_APART_MICROS_MAX: u64 = 250_000;
/// What every finding about the eviction policy starts with.
pub(crate) const EVICTION: &str = "maxmemory-policy";

/// What was found on all masters.
pub(crate) struct Inspection {
    masters: Vec<MasterInspection>,
    clocks: Option<Finding>,
    /// The command that gives the user its rights.
    grant: String,
}

struct MasterInspection {
    address: Address,
    settings: Settings,
    /// The commands that the user may not run.
    refused: Vec<String>,
}

impl Inspection {
    /// Asks every master for its settings, and tries what the user may do there.
    pub(crate) async fn make(servers: &Servers, names: &Names) -> Result<Self> {
        let map = servers.map();
        let mut masters = Vec::new();
        for node in map.masters() {
            let (settings, refused) = (settings(node).await?, refused_commands(node, names).await?);
            masters.push(MasterInspection { address: node.address.clone(), settings, refused });
        }
        let clocks = if servers.is_cluster() { Some(clocks(map.masters()).await) } else { None };
        Ok(Self { masters, clocks, grant: servers.config().grant() })
    }

    /// What survives a crash; the worst of all masters.
    pub(crate) fn durability(&self) -> Durability {
        let found = self.masters.iter().map(|master| Durability::found(&master.settings)).min();
        found.unwrap_or(Durability::Unreadable)
    }

    /// Refuses servers that cannot keep the promise.
    pub(crate) fn refuse(&self, wanted: Option<Durability>) -> Result<()> {
        self.masters.iter().try_for_each(|master| master.refuse(&self.grant))?;
        let found = self.durability();
        match wanted {
            Some(wanted) if found < wanted => Err(invalid(format!(
                "this Redis keeps its writes `{found}` and `{wanted}` was asked for; set appendonly and appendfsync, or \
                 ask for less"
            ))),
            _ => Ok(()),
        }
    }

    /// Every setting that matters, on every master.
    pub(crate) fn findings(&self, wanted: Durability) -> Vec<Finding> {
        let masters = self.masters.iter().flat_map(|master| master.findings(wanted, &self.grant));
        masters.chain(self.clocks.clone()).collect()
    }

    /// What acknowledgements survive, in words.
    pub(crate) fn survives(&self) -> String {
        let crash = match self.durability() {
            Durability::Always => "kill -9, a crash of its machine, and loss of power",
            Durability::EverySecond => "a restart; a crash loses the last second or two",
            Durability::SystemDecides => "a restart; loss of power loses up to half a minute",
            Durability::Snapshots => "what its last snapshot holds, which may be minutes old",
            Durability::None => "nothing: this Redis keeps nothing on disk",
            Durability::Unreadable => "unknown: this Redis does not show its settings",
        };
        let replicas = self.masters.iter().map(|master| master.settings.replicas).min().flatten();
        let failover = match replicas {
            Some(0) => "no failover: no replica is attached",
            Some(_) => "a failover loses what had not reached the replica",
            None => "whether a replica is attached is unknown",
        };
        format!("{crash}; {failover}")
    }
}

impl MasterInspection {
    fn refuse(&self, grant: &str) -> Result<()> {
        let Self { address, settings, refused } = self;
        match settings.maxmemory_policy.as_deref() {
            Some("noeviction") => {}
            Some(policy) => {
                return Err(invalid(format!(
                    "Redis at {address} has maxmemory-policy {policy}, which deletes records whose promise still holds; \
                     set it to noeviction, or take a server that is no cache"
                )));
            }
            None => {
                tracing::warn!(%address, "semel: maxmemory-policy cannot be read; make sure that it is noeviction");
            }
        }
        if settings.role.as_deref().is_some_and(|role| role != "master") {
            return Err(invalid(format!(
                "Redis at {address} is a replica, and takes no writes; connect to its master, or through its sentinels"
            )));
        }
        if !refused.is_empty() {
            let refused = refused.join(", ");
            return Err(invalid(format!(
                "the user may not run {refused} on Redis at {address}, which the store needs; run `{grant}`"
            )));
        }
        Ok(())
    }

    fn findings(&self, wanted: Durability, grant: &str) -> Vec<Finding> {
        let settings = &self.settings;
        let at = |setting: &str| format!("{setting} at {}", self.address);
        let is = |wanted: &'static str| move |found: &str| found == wanted;
        let found = Durability::found(settings);
        let durability = (found != Durability::Unreadable).then_some(found.as_str());
        let release = settings.release.as_deref();
        let policy = settings.maxmemory_policy.as_deref();
        let (rights, wanted_rights) = if self.refused.is_empty() {
            ("all".to_owned(), "all")
        } else {
            (format!("not {}", self.refused.join(", ")), grant)
        };
        vec![
            finding(at("redis_version"), release, "6.2 or newer", |found| number(found) >= Some((6, 2))),
            finding(at("role"), settings.role.as_deref(), "master", is("master")),
            finding(at(EVICTION), policy, "noeviction", is("noeviction")),
            finding(at("durability"), durability, wanted.as_str(), |_| found >= wanted),
            finding(at("rights"), Some(&rights), wanted_rights, |_| self.refused.is_empty()),
        ]
    }
}

fn finding(setting: String, found: Option<&str>, wanted: &str, keeps: impl FnOnce(&str) -> bool) -> Finding {
    let verdict = match found {
        None => Verdict::Unreadable,
        Some(found) if keeps(found) => Verdict::Kept,
        Some(_) => Verdict::Broken,
    };
    Finding { setting: setting.into(), found: found.map(Box::from), wanted: wanted.into(), verdict }
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

/// The commands that the store needs and this user may not run.
async fn refused_commands(node: &Node, names: &Names) -> ServerResult<Vec<String>> {
    for load in script::load() {
        match node.ask_one(&load).await {
            Err(failure) if failure.lacks_right() => return Ok(vec!["script|load".to_owned()]),
            Err(failure) => return Err(failure.harmless()),
            Ok(_) => {}
        }
    }
    match node.ask_one(&script::rights(names)).await {
        Err(failure) if failure.lacks_right() => Ok(vec!["evalsha".to_owned()]),
        Err(failure) => Err(failure.harmless()),
        Ok(answer) => {
            let refused = reply::list(answer, "the script for rights").map_err(Failure::harmless)?;
            Ok(refused.into_iter().filter_map(reply::text).collect())
        }
    }
}

/// The settings of a server: by its configuration, or where that is not shown by its INFO.
async fn settings(node: &Node) -> ServerResult<Settings> {
    let get = |name: &str| {
        let mut cmd = redis::cmd("CONFIG");
        cmd.arg("GET").arg(name);
        cmd
    };
    let names = [EVICTION, "appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save"];
    let commands: Vec<Cmd> = names.into_iter().map(get).chain([redis::cmd("INFO")]).collect();
    let mut answers = node.ask(&commands.iter().collect::<Vec<_>>()).await.map_err(Failure::harmless)?;
    let info = answers.pop().unwrap_or(Value::Nil);
    if let Value::ServerError(error) = &info
        && error.code() != "NOPERM"
    {
        return Err(node.refused(error).harmless());
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
        replicas: info("connected_slaves").and_then(|count| count.parse().ok()),
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
