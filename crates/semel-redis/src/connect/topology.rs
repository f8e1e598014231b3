//! Which servers there are, and which of them is the master of what: as far as is known, and found again when in doubt.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use semel::Result;

use super::client::Connector;
use super::map::Map;
use super::sentinel::Sentinels;
use super::{Node, cluster};
use crate::config::{Address, Config, Kind};
use crate::error::{Failure, ServerResult};

/// The servers of a store.
pub(crate) struct Topology {
    config: Config,
    connector: Connector,
    sentinels: Option<Sentinels>,
    map: Mutex<Arc<Map>>,
    /// The servers of the map, and those that the URL names: connections to all others are closed.
    nodes: Mutex<HashMap<Address, Arc<Node>>>,
    /// Servers that lost a reply since the masters were last found.
    suspects: Mutex<Vec<Address>>,
    finding: tokio::sync::Mutex<()>,
    /// How often the masters were found.
    found: AtomicU64,
    /// How often the masters changed.
    changes: AtomicU64,
}

impl Topology {
    pub(crate) async fn connect(config: Config) -> Result<Self> {
        let topology = Self::new(config)?;
        let map = topology.ask_for_map(&[]).await?;
        *lock(&topology.map) = Arc::new(map);
        Ok(topology)
    }

    /// A topology of which nothing is known but the URL.
    fn new(config: Config) -> Result<Self> {
        let connector = Connector::new(&config)?;
        let sentinels = match &config.servers {
            Kind::Sentinel { master, login } => {
                Some(Sentinels::new(&config.addresses, connector.for_sentinels(login.clone()), master))
            }
            Kind::One | Kind::Cluster => None,
        };
        let first = config.addresses.first().ok_or_else(|| Failure::no_server("the URL names no server"))?;
        let first = Arc::new(Node::new(first.clone(), connector.clone(), config.connections));
        Ok(Self {
            connector,
            sentinels,
            map: Mutex::new(Arc::new(Map::One(first))),
            nodes: Mutex::default(),
            suspects: Mutex::default(),
            finding: tokio::sync::Mutex::default(),
            found: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            config,
        })
    }

    pub(crate) fn map(&self) -> Arc<Map> {
        Arc::clone(&lock(&self.map))
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn sentinels(&self) -> Option<&Sentinels> {
        self.sentinels.as_ref()
    }

    /// How often the masters changed since the store connected.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Has the masters found before anything else is sent: this server lost a reply.
    pub(super) fn suspect(&self, address: &Address) {
        let mut suspects = lock(&self.suspects);
        if !suspects.contains(address) {
            suspects.push(address.clone());
        }
    }

    /// The servers that lost a reply since the masters were last found.
    pub(super) fn suspects(&self) -> Vec<Address> {
        lock(&self.suspects).clone()
    }

    /// Finds the present masters, and whether they are others than those of the map that was `used`. Servers that are in
    /// `doubt` are asked only if no other answers: one that was cut off from the others still believes in its old map.
    pub(super) async fn find_masters(
        &self,
        used: &Arc<Map>,
        doubt: &[Address],
    ) -> ServerResult<(Arc<Map>, bool)> {
        let found = self.found.load(Ordering::Acquire);
        let _finding = self.finding.lock().await;
        let known = self.map();
        // Others are known already, or another caller has asked since this one came.
        let is_other = !used.agrees_with(&known);
        if is_other || self.found.load(Ordering::Acquire) > found.saturating_add(1) {
            return Ok((known, is_other));
        }
        let map = self.ask_for_map(doubt).await?;
        lock(&self.suspects).clear();
        self.found.fetch_add(1, Ordering::AcqRel);
        let is_other = !map.agrees_with(&known);
        if is_other {
            tracing::info!(masters = ?map.masters(), "semel: Redis has other masters now");
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
        let map = Arc::new(map);
        *lock(&self.map) = Arc::clone(&map);
        self.keep_only(&known, &map);
        Ok((map, is_other))
    }

    async fn ask_for_map(&self, doubt: &[Address]) -> ServerResult<Map> {
        if let Some(sentinels) = &self.sentinels {
            return Ok(Map::One(self.node(&sentinels.master().await?)));
        }
        if self.config.servers != Kind::Cluster {
            let known = self.map();
            let only =
                known.masters().first().ok_or_else(|| Failure::no_server("the URL names no server"))?;
            return Ok(Map::One(Arc::clone(only)));
        }
        let named = self.map();
        self.config.addresses.iter().chain(named.replicas()).for_each(|address| drop(self.node(address)));
        let known: Vec<_> = lock(&self.nodes).values().cloned().collect();
        let (doubted, trusted): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|node| doubt.contains(&node.address));
        match cluster::map(&trusted, |address| self.node(address)).await {
            Err(_) if !doubted.is_empty() => cluster::map(&doubted, |address| self.node(address)).await,
            answer => answer,
        }
    }

    /// Closes the masters that are none any more, and drops the servers that neither the map nor the URL names.
    fn keep_only(&self, old: &Map, new: &Map) {
        let masters = new.masters().iter().map(|node| &node.address);
        let kept: HashSet<&Address> = masters.chain(new.replicas()).chain(&self.config.addresses).collect();
        let is_master = |node: &Arc<Node>| new.masters().iter().any(|master| Arc::ptr_eq(master, node));
        let mut nodes = lock(&self.nodes);
        let deposed: Vec<_> = old.masters().iter().filter(|node| !is_master(node)).cloned().collect();
        nodes.retain(|address, node| {
            kept.contains(address) && !deposed.iter().any(|deposed| Arc::ptr_eq(deposed, node))
        });
        drop(nodes);
        for node in deposed {
            node.close();
        }
    }

    /// The server at an address.
    pub(super) fn node(&self, address: &Address) -> Arc<Node> {
        let mut nodes = lock(&self.nodes);
        let new = || Arc::new(Node::new(address.clone(), self.connector.clone(), self.config.connections));
        Arc::clone(nodes.entry(address.clone()).or_insert_with(new))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Address {
        Address { host: "localhost".to_owned(), port }
    }

    #[tokio::test]
    async fn servers_that_are_not_named_any_more_are_dropped_and_deposed_masters_closed() {
        let topology = Topology::new(Config::of(Kind::Cluster, vec![at(1)])).unwrap();
        (1..50).for_each(|port| drop(topology.node(&at(port))));
        let map = |masters: [u16; 2], replica| Map::Cluster {
            masters: masters.map(|port| topology.node(&at(port))).into(),
            owners: Vec::new(),
            replicas: vec![at(replica)],
        };
        let (old, new) = (map([2, 3], 4), map([3, 5], 2));
        topology.keep_only(&old, &new);
        let mut left: Vec<u16> = lock(&topology.nodes).keys().map(|address| address.port).collect();
        left.sort_unstable();
        assert_eq!(left, [1, 3, 5]);
        let deposed = old.masters()[0].ask_one(&redis::cmd("PING")).await.unwrap_err();
        assert!(semel::Error::from(deposed).to_string().contains("is not the master any more"));
    }
}
