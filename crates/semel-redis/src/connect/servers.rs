//! All servers of a store: commands go to whoever is the master of their tag, and again where nothing happened.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Value;
use semel::Result;
use semel::clock::Timestamp;

use super::batch::{Command, CommandBatch, Problem, Purpose};
use super::client::Connector;
use super::map::Map;
use super::{Node, cluster, sentinel};
use crate::config::{Address, Config, Kind};
use crate::error::{Failure, Happened, Remedy, ServerResult};
use crate::script;

/// How often what certainly did not happen is tried before somebody hears of it.
const TRIES_MAX: usize = 5;
/// How long to wait for keys that are on their way from one server to another.
const MOMENT: Duration = Duration::from_millis(20);

/// The servers.
pub(crate) struct Servers {
    config: Config,
    connector: Connector,
    sentinels: Option<Connector>,
    map: Mutex<Arc<Map>>,
    /// Every server that was ever heard of, so that its connections are kept.
    nodes: Mutex<HashMap<Address, Arc<Node>>>,
    /// Whether the map may be wrong: look before anything is sent.
    in_doubt: AtomicBool,
    looking: tokio::sync::Mutex<()>,
}

impl Servers {
    pub(crate) async fn connect(config: Config) -> Result<Self> {
        let connector = Connector::new(&config)?;
        let sentinels = match &config.servers {
            Kind::Sentinel { login, .. } => Some(connector.for_sentinels(login.clone())),
            Kind::One | Kind::Cluster => None,
        };
        let seeds: HashMap<_, _> = config
            .addresses
            .iter()
            .map(|address| {
                (address.clone(), Arc::new(Node::new(address.clone(), connector.clone(), config.connections)))
            })
            .collect();
        let first = config.addresses.first().and_then(|address| seeds.get(address)).map(Arc::clone);
        let first = first.ok_or_else(|| Failure::no_server("the URL names no server"))?;
        let servers = Self {
            connector,
            sentinels,
            map: Mutex::new(Arc::new(Map::One(first))),
            nodes: Mutex::new(seeds),
            in_doubt: AtomicBool::new(false),
            looking: tokio::sync::Mutex::new(()),
            config,
        };
        let map = servers.look().await?;
        *servers.map.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
        Ok(servers)
    }

    pub(crate) fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether tags may lie on different servers, and one command may speak of one tag only.
    pub(crate) fn is_cluster(&self) -> bool {
        self.config.servers == Kind::Cluster
    }

    /// The answers to these commands, in their order, and the latest now of the servers that were asked to read.
    pub(crate) async fn send(
        &self,
        commands: &[Command],
        purpose: Purpose,
    ) -> ServerResult<(Vec<Value>, Timestamp)> {
        let mut map = self.map();
        if self.in_doubt.load(Ordering::Acquire) {
            // If nobody can be asked where the masters are, the ones that are known may still answer.
            map = self.look_again().await.map_or(map, |(map, _)| map);
        }
        let mut batch = CommandBatch::new(commands);
        for turn in 1..=TRIES_MAX {
            let problems = batch.go(&map, commands, purpose).await;
            let Some(Problem { failure, .. }) = problems.first() else {
                return Ok(batch.answered());
            };
            if problems.iter().any(|problem| problem.failure.remedy == Remedy::Reconnect) {
                self.in_doubt.store(true, Ordering::Release);
            }
            let lost = problems.iter().find(|problem| problem.failure.happened == Happened::Unknown);
            if let Some(lost) = lost {
                return Err(lost.failure.clone());
            }
            let failure = batch.judge(failure.clone(), purpose);
            if turn == TRIES_MAX {
                return Err(failure);
            }
            map = match self.mend(&map, &mut batch, &problems, turn).await {
                Ok(Some(map)) => map,
                Ok(None) | Err(_) => return Err(failure),
            };
        }
        Err(Failure::no_server("no server was asked"))
    }

    /// Does what may help, and says whom to ask then; `None` if there is no help.
    async fn mend(
        &self,
        map: &Arc<Map>,
        batch: &mut CommandBatch,
        problems: &[Problem],
        turn: usize,
    ) -> ServerResult<Option<Arc<Map>>> {
        let (mut looks, mut must_change) = (false, false);
        for Problem { node, failure, at } in problems {
            match &failure.remedy {
                Remedy::None => return Ok(None),
                Remedy::LoadScripts => {
                    for load in script::load() {
                        node.ask_one(&load).await?;
                    }
                }
                Remedy::Ask(address) => {
                    batch.ask_instead(at, &self.node(address));
                }
                Remedy::Wait => tokio::time::sleep(MOMENT).await,
                Remedy::Moved => looks = true,
                Remedy::Look => (looks, must_change) = (true, true),
                Remedy::Reconnect => {
                    node.reconnect();
                    // Once is enough: a new connection either reaches another server, or nothing has changed.
                    (looks, must_change) = (true, turn > 1);
                }
            }
        }
        if !looks {
            return Ok(Some(Arc::clone(map)));
        }
        let (found, changed) = self.look_again().await?;
        Ok((changed || !must_change).then_some(found))
    }

    /// Looks where the masters are, and says whether that has changed.
    async fn look_again(&self) -> ServerResult<(Arc<Map>, bool)> {
        let before = self.map();
        let _looking = self.looking.lock().await;
        let known = self.map();
        if !Arc::ptr_eq(&before, &known) {
            return Ok((known, true));
        }
        let found = self.look().await?;
        self.in_doubt.store(false, Ordering::Release);
        if found.agrees_with(&known) {
            return Ok((known, false));
        }
        tracing::info!(masters = ?found.masters(), "semel: Redis has other masters now");
        let found = Arc::new(found);
        *self.map.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&found);
        Ok((found, true))
    }

    async fn look(&self) -> ServerResult<Map> {
        match (&self.config.servers, &self.sentinels) {
            (Kind::Cluster, _) => {
                let known = self.known();
                cluster::map(&known, |address| self.node(address)).await
            }
            (Kind::Sentinel { master, .. }, Some(connector)) => {
                let address = sentinel::master(&self.config.addresses, connector, master).await?;
                Ok(Map::One(self.node(&address)))
            }
            (Kind::One | Kind::Sentinel { .. }, _) => Ok(Map::One(Arc::clone(
                self.map().masters().first().ok_or_else(|| Failure::no_server("the URL names no server"))?,
            ))),
        }
    }

    fn known(&self) -> Vec<Arc<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn node(&self, address: &Address) -> Arc<Node> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Node::new(address.clone(), self.connector.clone(), self.config.connections));
        Arc::clone(nodes.entry(address.clone()).or_insert_with(new))
    }
}
