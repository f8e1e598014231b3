//! All servers of a store: commands go to whoever is the master of their tag, and again where nothing happened.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use redis::{Cmd, Value};
use semel::Result;
use semel::clock::Timestamp;

use super::client::Connector;
use super::map::Map;
use super::{Node, cluster, sentinel};
use crate::config::{Address, Config, Kind};
use crate::error::{Happened, Remedy, Told, Trouble};
use crate::names::Tag;
use crate::{reply, script};

/// How often what certainly did not happen is tried before somebody hears of it.
const ROUNDS_MAX: usize = 5;
/// How long to wait for keys that are on their way from one server to another.
const MOMENT: Duration = Duration::from_millis(20);

/// One command, and the tag whose master it is for.
pub(crate) struct Command {
    pub(crate) tag: Tag,
    pub(crate) cmd: Cmd,
}

/// What commands are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// They change nothing, so a lost reply means that nothing happened. The servers' now is wanted as well.
    Read,
    /// They change something.
    Write,
}

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

/// The answers so far.
struct Round {
    answers: Vec<Option<Value>>,
    now: Timestamp,
    /// Commands that are yet to be answered.
    left: Vec<usize>,
    /// Whom to ask instead of the map's master, this once.
    asks: HashMap<usize, Arc<Node>>,
}

/// What went wrong with some commands at one server.
struct Problem {
    node: Arc<Node>,
    trouble: Trouble,
    at: Vec<usize>,
}

/// Commands that go to one server together.
struct Group {
    node: Arc<Node>,
    at: Vec<usize>,
    asking: bool,
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
        let first = first.ok_or_else(|| Trouble::nobody("the URL names no server"))?;
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
    pub(crate) async fn send(&self, commands: &[Command], purpose: Purpose) -> Told<(Vec<Value>, Timestamp)> {
        let mut map =
            if self.in_doubt.load(Ordering::Acquire) { self.look_again().await?.0 } else { self.map() };
        let mut round = Round {
            answers: commands.iter().map(|_| None).collect(),
            now: Timestamp::default(),
            left: (0..commands.len()).collect(),
            asks: HashMap::new(),
        };
        for turn in 1..=ROUNDS_MAX {
            let problems = round.go(&map, commands, purpose).await;
            let Some(Problem { trouble, .. }) = problems.first() else {
                return Ok((round.answers.into_iter().flatten().collect(), round.now));
            };
            if problems.iter().any(|problem| problem.trouble.remedy == Remedy::Reconnect) {
                self.in_doubt.store(true, Ordering::Release);
            }
            let lost = problems.iter().find(|problem| problem.trouble.happened == Happened::Unknown);
            if let Some(lost) = lost {
                return Err(lost.trouble.clone());
            }
            let trouble = round.judge(trouble.clone(), purpose);
            if turn == ROUNDS_MAX {
                return Err(trouble);
            }
            map = match self.mend(&map, &mut round, &problems, turn).await {
                Ok(Some(map)) => map,
                Ok(None) | Err(_) => return Err(trouble),
            };
        }
        Err(Trouble::nobody("nobody was asked"))
    }

    /// Does what may help, and says whom to ask then; `None` if there is no help.
    async fn mend(
        &self,
        map: &Arc<Map>,
        round: &mut Round,
        problems: &[Problem],
        turn: usize,
    ) -> Told<Option<Arc<Map>>> {
        let (mut looks, mut must_change) = (false, false);
        for Problem { node, trouble, at } in problems {
            match &trouble.remedy {
                Remedy::None => return Ok(None),
                Remedy::LoadScripts => {
                    for load in script::load() {
                        node.ask_one(&load).await?;
                    }
                }
                Remedy::Ask(address) => {
                    let asked = self.node(address);
                    round.asks.extend(at.iter().map(|at| (*at, Arc::clone(&asked))));
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
    async fn look_again(&self) -> Told<(Arc<Map>, bool)> {
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

    async fn look(&self) -> Told<Map> {
        match (&self.config.servers, &self.sentinels) {
            (Kind::Cluster, _) => {
                let mut known: Vec<_> = self.map().masters().to_vec();
                known.extend(self.nodes.lock().unwrap_or_else(PoisonError::into_inner).values().cloned());
                cluster::map(&known, |address| self.node(address)).await
            }
            (Kind::Sentinel { master, .. }, Some(connector)) => {
                let address = sentinel::master(&self.config.addresses, connector, master).await?;
                Ok(Map::One(self.node(&address)))
            }
            (Kind::One | Kind::Sentinel { .. }, _) => Ok(Map::One(Arc::clone(
                self.map().masters().first().ok_or_else(|| Trouble::nobody("the URL names no server"))?,
            ))),
        }
    }

    fn node(&self, address: &Address) -> Arc<Node> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Node::new(address.clone(), self.connector.clone(), self.config.connections));
        Arc::clone(nodes.entry(address.clone()).or_insert_with(new))
    }
}

impl Round {
    /// Sends what is left to be answered, and says what went wrong.
    async fn go(&mut self, map: &Map, commands: &[Command], purpose: Purpose) -> Vec<Problem> {
        let groups = self.groups(map, commands, purpose);
        let time = redis::cmd("TIME");
        let asking = redis::cmd("ASKING");
        let sent = join_all(groups.iter().map(|group| group.ask(commands, purpose, &time, &asking))).await;
        let mut problems: Vec<Problem> = Vec::new();
        let mut add = |node: &Arc<Node>, at: Vec<usize>, trouble: Trouble| {
            let trouble = if purpose == Purpose::Read { trouble.harmless() } else { trouble };
            let same = |known: &&mut Problem| {
                Arc::ptr_eq(&known.node, node) && known.trouble.remedy == trouble.remedy
            };
            match problems.iter_mut().find(same) {
                Some(known) => known.at.extend(at),
                None => problems.push(Problem { node: Arc::clone(node), trouble, at }),
            }
        };
        self.left.clear();
        self.asks.clear();
        for (group, sent) in groups.into_iter().zip(sent) {
            let answers = match sent {
                Ok((answers, now)) => {
                    self.now = self.now.max(now);
                    answers
                }
                Err(trouble) => {
                    self.left.extend(&group.at);
                    add(&group.node, group.at, trouble);
                    continue;
                }
            };
            for (at, answer) in group.at.into_iter().zip(answers) {
                if let Value::ServerError(error) = &answer {
                    add(&group.node, vec![at], Trouble::refused(&group.node.address, error));
                    self.left.push(at);
                } else if let Some(place) = self.answers.get_mut(at) {
                    *place = Some(answer);
                }
            }
        }
        problems
    }

    /// What is left, by the server that it goes to.
    fn groups(&self, map: &Map, commands: &[Command], purpose: Purpose) -> Vec<Group> {
        let group = |node: &Arc<Node>| Group { node: Arc::clone(node), at: Vec::new(), asking: false };
        let mut groups: Vec<_> = map.masters().iter().map(group).collect();
        for at in &self.left {
            let Some(command) = commands.get(*at) else { continue };
            if let Some(node) = self.asks.get(at) {
                groups.push(Group { node: Arc::clone(node), at: vec![*at], asking: true });
            } else if let Some(group) = groups.get_mut(map.owner(command.tag)) {
                group.at.push(*at);
            }
        }
        // Somebody has to say what time it is, also if there is nothing to read.
        let mut wanted = usize::from(commands.is_empty() && purpose == Purpose::Read);
        groups.retain(|group| {
            let keeps = wanted > 0 || !group.at.is_empty();
            wanted = wanted.saturating_sub(1);
            keeps
        });
        groups
    }

    /// What the trouble means for the whole: if other parts have happened, nobody can say that nothing did.
    fn judge(&self, trouble: Trouble, purpose: Purpose) -> Trouble {
        let in_part = purpose == Purpose::Write && self.answers.iter().any(Option::is_some);
        if in_part { trouble.in_part() } else { trouble }
    }
}

impl Group {
    /// The answers, and the server's now if it is wanted: read behind all else, so it is not before what they speak of.
    async fn ask(
        &self,
        commands: &[Command],
        purpose: Purpose,
        time: &Cmd,
        asking: &Cmd,
    ) -> Told<(Vec<Value>, Timestamp)> {
        let ours = self.at.iter().filter_map(|at| commands.get(*at));
        let mut sent: Vec<&Cmd> = Vec::with_capacity(self.at.len().saturating_add(2));
        sent.extend(self.asking.then_some(asking));
        sent.extend(ours.map(|command| &command.cmd));
        sent.extend((purpose == Purpose::Read).then_some(time));
        let mut answers = self.node.ask(&sent).await?;
        let now = match purpose {
            Purpose::Read => reply::time(answers.pop().unwrap_or(Value::Nil))?,
            Purpose::Write => Timestamp::default(),
        };
        if self.asking {
            answers.drain(..1);
        }
        Ok((answers, now))
    }
}
