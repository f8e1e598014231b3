//! One server, and the connections to it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use redis::{Cmd, Pipeline, RedisError, Value};

use super::client::Connector;
use super::reconnecting::ReconnectingConnection;
use crate::config::Address;
use crate::error::{Failure, ServerResult};

/// A server.
pub(crate) struct Node {
    pub(crate) address: Address,
    connector: Connector,
    connections: Box<[ReconnectingConnection]>,
    turn: AtomicUsize,
    /// Grows when a connection breaks. A server that was restarted has broken all of them, and finding that out one by
    /// one would cost a lost reply each.
    generation: AtomicU64,
}

impl Node {
    pub(crate) fn new(address: Address, connector: Connector, connections: usize) -> Self {
        let connections = (0..connections).map(|_| ReconnectingConnection::default()).collect();
        Self { address, connector, connections, turn: AtomicUsize::new(0), generation: AtomicU64::new(0) }
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
    pub(crate) async fn ask(&self, commands: &[&Cmd]) -> ServerResult<Vec<Value>> {
        let generation = self.generation.load(Ordering::Acquire);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let at = turn.checked_rem(self.connections.len());
        let connection = at.and_then(|at| self.connections.get(at));
        let connection =
            connection.ok_or_else(|| Failure::no_server("there are no connections; allow some"))?;
        let opened = connection.connection(&self.connector, &self.address, generation).await;
        let mut connection = opened.map_err(|error| Failure::unreached(&self.address, &error))?.connection;
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
        if answers.len() == commands.len() {
            Ok(answers)
        } else {
            Err(Failure::unexpected_reply("too few answers"))
        }
    }

    /// The answer to one command; an error of the server is an error.
    pub(crate) async fn ask_one(&self, command: &Cmd) -> ServerResult<Value> {
        match self.ask(&[command]).await?.pop() {
            Some(Value::ServerError(error)) => Err(Failure::refused(&self.address, &error)),
            Some(value) => Ok(value),
            None => Err(Failure::unexpected_reply("no answer")),
        }
    }

    /// What was sent may have arrived. The connection is not used again: after a late reply nobody would know what it
    /// answers to, and a server that hangs is found alive only by a new one.
    fn lost(&self, generation: u64, error: &RedisError) -> Failure {
        self.broke(generation);
        Failure::lost(&self.address, error)
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({})", self.address)
    }
}
