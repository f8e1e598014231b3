//! One server, and the connections to it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use redis::{Cmd, Pipeline, RedisError, Value};

use super::client::Connector;
use super::lane::Lane;
use crate::config::Address;
use crate::error::{Told, Trouble};

/// A server.
pub(crate) struct Node {
    pub(crate) address: Address,
    connector: Connector,
    lanes: Box<[Lane]>,
    turn: AtomicUsize,
    /// Grows when a connection breaks. A server that was restarted has broken all of them, and finding that out one by
    /// one would cost a lost reply each.
    generation: AtomicU64,
}

impl Node {
    pub(crate) fn new(address: Address, connector: Connector, connections: usize) -> Self {
        let lanes = (0..connections).map(|_| Lane::default()).collect();
        Self { address, connector, lanes, turn: AtomicUsize::new(0), generation: AtomicU64::new(0) }
    }

    /// Has all connections opened anew.
    pub(crate) fn reconnect(&self) {
        self.broke(self.generation.load(Ordering::Acquire));
    }

    /// A connection of this generation broke. The ones that replaced it meanwhile are not blamed for it.
    fn broke(&self, generation: u64) {
        let next = generation.saturating_add(1);
        let _ = self.generation.compare_exchange(generation, next, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The answers to these commands, in their order; errors of the server are among them.
    pub(crate) async fn ask(&self, commands: &[&Cmd]) -> Told<Vec<Value>> {
        let generation = self.generation.load(Ordering::Acquire);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let lane = turn.checked_rem(self.lanes.len()).and_then(|lane| self.lanes.get(lane));
        let lane = lane.ok_or_else(|| Trouble::nobody("there are no connections; allow some"))?;
        let opened = lane.connection(&self.connector, &self.address, generation).await;
        let mut connection = opened.map_err(|error| Trouble::unreached(&self.address, &error))?.connection;
        let answers = match commands {
            [command] => connection.send_packed_command(command).await.map(|answer| vec![answer]),
            commands => {
                let mut pipeline = Pipeline::with_capacity(commands.len());
                for command in commands {
                    pipeline.add_command(Cmd::clone(command));
                }
                connection.send_packed_commands(&pipeline, 0, commands.len()).await
            }
        };
        let answers = answers.map_err(|error| self.lost(generation, &error))?;
        if answers.len() == commands.len() { Ok(answers) } else { Err(Trouble::nonsense("too few answers")) }
    }

    /// The answer to one command; an error of the server is an error.
    pub(crate) async fn ask_one(&self, command: &Cmd) -> Told<Value> {
        match self.ask(&[command]).await?.pop() {
            Some(Value::ServerError(error)) => Err(Trouble::refused(&self.address, &error)),
            Some(value) => Ok(value),
            None => Err(Trouble::nonsense("no answer")),
        }
    }

    /// What was sent may have arrived. The connection is not used again: after a late reply nobody would know what it
    /// answers to, and a server that hangs is found alive only by a new one.
    fn lost(&self, generation: u64, error: &RedisError) -> Trouble {
        self.broke(generation);
        Trouble::lost(&self.address, error)
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({})", self.address)
    }
}
