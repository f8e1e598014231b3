//! One server, and the connections to it.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use futures_util::future::{Either, select};
use redis::{Cmd, Pipeline, RedisError, RedisResult, ServerError, Value};
use tokio::sync::Notify;

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
    is_closed: AtomicBool,
    closed: Notify,
}

impl Node {
    pub(crate) fn new(address: Address, connector: Connector, connections: usize) -> Self {
        let connections = (0..connections).map(|_| ReconnectingConnection::default()).collect();
        Self {
            address,
            connector,
            connections,
            turn: AtomicUsize::new(0),
            generation: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            closed: Notify::new(),
        }
    }

    /// Has all connections opened anew.
    pub(crate) fn reconnect(&self) {
        self.broke(self.generation.load(Ordering::Acquire));
    }

    /// Leaves the server for good: what is in flight is unknown from now on, and nothing more is sent. What a deposed master
    /// acknowledges is lost when it becomes a replica.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.closed.notify_waiters();
        self.connections.iter().for_each(ReconnectingConnection::close);
    }

    /// A connection of this generation broke. Those that replaced it meanwhile stay.
    fn broke(&self, generation: u64) {
        let next = generation.saturating_add(1);
        let _ = self.generation.compare_exchange(generation, next, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The answers to these commands, in their order; errors of the server are among them.
    pub(crate) async fn ask(&self, commands: &[&Cmd]) -> ServerResult<Vec<Value>> {
        let mut closed = pin!(self.closed.notified());
        closed.as_mut().enable();
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Failure::left(&self.address));
        }
        match select(pin!(self.exchange(commands)), closed).await {
            Either::Left((answers, _)) => answers,
            Either::Right(_) => Err(Failure::deposed(&self.address)),
        }
    }

    async fn exchange(&self, commands: &[&Cmd]) -> ServerResult<Vec<Value>> {
        let generation = self.generation.load(Ordering::Acquire);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let at = turn.checked_rem(self.connections.len());
        let connection = at.and_then(|at| self.connections.get(at));
        let connection =
            connection.ok_or_else(|| Failure::no_server("there are no connections; allow some"))?;
        let opened = connection.connection(&self.connector, &self.address, generation).await;
        let mut connection = opened.map_err(|error| Failure::unreached(&self.address, &error))?.connection;
        let answers: RedisResult<Vec<Value>> = match commands {
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
            Some(Value::ServerError(error)) => Err(self.refused(&error)),
            Some(value) => Ok(value),
            None => Err(Failure::unexpected_reply("no answer")),
        }
    }

    /// What an error of this server means.
    pub(crate) fn refused(&self, error: &ServerError) -> Failure {
        Failure::refused(&self.address, error, self.connector.grant())
    }

    /// What was sent may have arrived. The connection is not used again: a late reply could be taken for that to another
    /// command, and only a new connection shows that a server that hung is alive.
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
