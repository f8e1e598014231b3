//! A batch of commands: each goes to the master of its tag, all at the same time, until each is answered.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use futures_util::future::join_all;
use redis::{Cmd, Value};
use semel::clock::Timestamp;

use super::Node;
use super::map::Map;
use crate::error::{Failure, ServerResult};
use crate::names::Tag;
use crate::reply;

static TIME: LazyLock<Cmd> = LazyLock::new(|| redis::cmd("TIME"));
static ASKING: LazyLock<Cmd> = LazyLock::new(|| redis::cmd("ASKING"));

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

/// The answers so far.
pub(super) struct CommandBatch {
    answers: Vec<Option<Value>>,
    now: Timestamp,
    /// Commands that are yet to be answered.
    left: Vec<usize>,
    /// The server to ask instead of the map's master, this once.
    asks: HashMap<usize, Arc<Node>>,
}

/// What went wrong with some commands at one server.
pub(super) struct Problem {
    pub(super) node: Arc<Node>,
    pub(super) failure: Failure,
    pub(super) at: Vec<usize>,
}

/// Commands that go to one server together.
struct Group {
    node: Arc<Node>,
    at: Vec<usize>,
    asking: bool,
}

impl CommandBatch {
    pub(super) fn new(commands: &[Command]) -> Self {
        Self {
            answers: commands.iter().map(|_| None).collect(),
            now: Timestamp::default(),
            left: (0..commands.len()).collect(),
            asks: HashMap::new(),
        }
    }

    /// The answers, once all are there.
    pub(super) fn answered(self) -> (Vec<Value>, Timestamp) {
        (self.answers.into_iter().flatten().collect(), self.now)
    }

    /// Sends these commands to another server than the master, this once.
    pub(super) fn ask_instead(&mut self, at: &[usize], node: &Arc<Node>) {
        self.asks.extend(at.iter().map(|at| (*at, Arc::clone(node))));
    }

    /// Sends what is left to be answered, and returns what went wrong.
    pub(super) async fn go(&mut self, map: &Map, commands: &[Command], purpose: Purpose) -> Vec<Problem> {
        let groups = self.groups(map, commands, purpose);
        let sent = join_all(groups.iter().map(|group| group.ask(commands, purpose))).await;
        let mut problems: Vec<Problem> = Vec::new();
        let mut add = |node: &Arc<Node>, at: Vec<usize>, failure: Failure| {
            let failure = if purpose == Purpose::Read { failure.harmless() } else { failure };
            let same = |known: &&mut Problem| {
                Arc::ptr_eq(&known.node, node) && known.failure.remedy == failure.remedy
            };
            match problems.iter_mut().find(same) {
                Some(known) => known.at.extend(at),
                None => problems.push(Problem { node: Arc::clone(node), failure, at }),
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
                Err(failure) => {
                    self.left.extend(&group.at);
                    add(&group.node, group.at, failure);
                    continue;
                }
            };
            for (at, answer) in group.at.into_iter().zip(answers) {
                if let Value::ServerError(error) = &answer {
                    add(&group.node, vec![at], group.node.refused(error));
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
        // One server is asked for the time, also if there is nothing to read.
        let mut wanted = usize::from(commands.is_empty() && purpose == Purpose::Read);
        groups.retain(|group| {
            let keeps = wanted > 0 || !group.at.is_empty();
            wanted = wanted.saturating_sub(1);
            keeps
        });
        groups
    }

    /// What the failure means for the whole: if other parts have happened, it is not true that nothing did.
    pub(super) fn judge(&self, failure: Failure, purpose: Purpose) -> Failure {
        let in_part = purpose == Purpose::Write && self.answers.iter().any(Option::is_some);
        if in_part { failure.in_part() } else { failure }
    }
}

impl Group {
    /// The answers, and the server's now if it is wanted: read behind all else, so it is not before what they speak of.
    async fn ask(&self, commands: &[Command], purpose: Purpose) -> ServerResult<(Vec<Value>, Timestamp)> {
        let ours = self.at.iter().filter_map(|at| commands.get(*at));
        let mut sent: Vec<&Cmd> = Vec::with_capacity(self.at.len().saturating_add(2));
        sent.extend(self.asking.then(|| &*ASKING));
        sent.extend(ours.map(|command| &command.cmd));
        sent.extend((purpose == Purpose::Read).then(|| &*TIME));
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
