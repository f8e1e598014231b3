//! All servers of a store: commands go to the master of their tag, and again where nothing happened.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use semel::Result;
use semel::clock::Timestamp;

use super::batch::{Command, CommandBatch, Problem, Purpose};
use super::map::Map;
use super::sentinel_watch::SentinelWatch;
use super::topology::Topology;
use crate::config::{Config, Kind};
use crate::error::{Failure, Happened, Remedy, ServerResult};
use crate::script;

/// How often what certainly did not happen is tried before the caller gets the error.
const TRIES_MAX: usize = 5;
/// How long to wait for keys that are moving from one server to another.
const MOVING_PAUSE: Duration = Duration::from_millis(20);

/// The servers.
pub(crate) struct Servers {
    topology: Arc<Topology>,
    watch: SentinelWatch,
}

impl Servers {
    pub(crate) async fn connect(config: Config) -> Result<Self> {
        let servers =
            Self { topology: Arc::new(Topology::connect(config).await?), watch: SentinelWatch::default() };
        servers.watch.ensure_running(&servers.topology);
        Ok(servers)
    }

    pub(crate) fn map(&self) -> Arc<Map> {
        self.topology.map()
    }

    /// How often the masters changed since the store connected.
    pub(crate) fn changes(&self) -> u64 {
        self.topology.changes()
    }

    pub(crate) fn config(&self) -> &Config {
        self.topology.config()
    }

    /// Whether tags may lie on different servers, and one command may speak of one tag only.
    pub(crate) fn is_cluster(&self) -> bool {
        self.config().servers == Kind::Cluster
    }

    /// The answers to these commands, in their order, and the latest now of the servers that were asked to read.
    pub(crate) async fn send(
        &self,
        commands: &[Command],
        purpose: Purpose,
    ) -> ServerResult<(Vec<Value>, Timestamp)> {
        self.watch.ensure_running(&self.topology);
        let mut map = self.topology.map();
        let suspects = self.topology.suspects();
        if !suspects.is_empty() {
            // If no server knows where the masters are, the known ones may still answer.
            map = self.topology.find_masters(&map, &suspects).await.map_or(map, |(map, _)| map);
        }
        let mut batch = CommandBatch::new(commands);
        for turn in 1..=TRIES_MAX {
            let problems = batch.go(&map, commands, purpose).await;
            let Some(Problem { failure, .. }) = problems.first() else {
                return Ok(batch.answered());
            };
            for problem in problems.iter().filter(|problem| problem.failure.remedy == Remedy::Reconnect) {
                self.topology.suspect(&problem.node.address);
            }
            let lost = problems.iter().find(|problem| problem.failure.happened == Happened::Unknown);
            if let Some(lost) = lost {
                return Err(lost.failure.clone());
            }
            let failure = batch.judge(failure.clone(), purpose);
            if turn == TRIES_MAX {
                return Err(failure);
            }
            map = match self.apply_remedies(&map, &mut batch, &problems, turn).await {
                Ok(Some(map)) => map,
                Ok(None) | Err(_) => return Err(failure),
            };
        }
        Err(Failure::no_server("no server was asked"))
    }

    /// Does what may help, and returns the masters to ask then; `None` if there is no help.
    async fn apply_remedies(
        &self,
        map: &Arc<Map>,
        batch: &mut CommandBatch,
        problems: &[Problem],
        turn: usize,
    ) -> ServerResult<Option<Arc<Map>>> {
        let (mut finds, mut must_change, mut doubt) = (false, false, Vec::new());
        for Problem { node, failure, at } in problems {
            match &failure.remedy {
                Remedy::None => return Ok(None),
                Remedy::LoadScripts => {
                    for load in script::load() {
                        node.ask_one(&load).await?;
                    }
                }
                Remedy::Ask(address) => {
                    batch.ask_instead(at, &self.topology.node(address));
                }
                Remedy::Wait => tokio::time::sleep(MOVING_PAUSE).await,
                Remedy::Moved => finds = true,
                Remedy::FindMasters => {
                    (finds, must_change) = (true, true);
                    doubt.push(node.address.clone());
                }
                Remedy::Reconnect => {
                    node.reconnect();
                    // Once is enough: a new connection either reaches another server, or nothing has changed.
                    (finds, must_change) = (true, turn > 1);
                    doubt.push(node.address.clone());
                }
            }
        }
        if !finds {
            return Ok(Some(Arc::clone(map)));
        }
        let (found, is_other) = self.topology.find_masters(map, &doubt).await?;
        Ok((is_other || !must_change).then_some(found))
    }
}
