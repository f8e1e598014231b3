//! A fixed number of connections, each with its statements prepared: as lean as a pool can be.

use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::{Client, NoTls, Statement};

/// How many connections those who call the server for each call have.
pub(super) const CONNECTIONS: u32 = 32;

/// Connections that nobody has right now.
pub(super) struct Pool {
    turns: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

/// A connection, and statements in the order in which they were given.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) statements: Vec<Statement>,
}

/// A connection that goes back when this is dropped.
pub(super) struct Lent<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
    /// Given back after the connection: fields are dropped later than `drop` runs.
    _turn: SemaphorePermit<'a>,
}

/// Opens one connection.
pub(super) async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl Pool {
    /// Opens all connections.
    pub(super) async fn open(url: &str, statements: &[&str]) -> Result<Self> {
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            let client = connect(url).await?;
            let mut prepared = Vec::new();
            for statement in statements {
                prepared.push(client.prepare(statement).await?);
            }
            idle.push(Connection { client, statements: prepared });
        }
        Ok(Self { turns: Semaphore::new(idle.len()), idle: Mutex::new(idle) })
    }

    /// Waits for a connection.
    pub(super) async fn take(&self) -> Result<Lent<'_>> {
        let turn = self.turns.acquire().await?;
        let connection = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Ok(Lent { pool: self, connection: Some(connection.context("a turn is a connection")?), _turn: turn })
    }
}

impl Lent<'_> {
    pub(super) fn connection(&self) -> Result<&Connection> {
        self.connection.as_ref().context("a connection is there until it is dropped")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(self.connection.take());
    }
}
