//! Statements that are prepared once for each connection, for transactions of `tokio_postgres`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use semel::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Statement, Transaction};

use crate::error::{Sent, error};
use crate::swap_answer::SwapAnswer;
use crate::transaction::{Asked, Carrier};

/// How many connections have their statements remembered. Beyond that, the one whose statements were not used for the
/// longest time has them prepared again: connections that are gone leave nothing else behind.
const CONNECTIONS_MAX: usize = 1_024;

/// Prepares semel's statements once for each connection, so that a complete in a transaction is neither parsed nor
/// planned at each call.
///
/// One serves all connections of a process, also those of a pool and those that are made anew later. Clones share
/// everything.
///
/// ```no_run
/// use semel_postgres::{CompleteIn, StatementCache};
/// # use semel::{Outcome, Permit};
/// # async fn charge(client: &mut tokio_postgres::Client, permit: Permit) -> Result<(), Box<dyn std::error::Error>> {
/// let statements = StatementCache::new(); // once, beside the pool
///
/// let transaction = client.transaction().await?;
/// transaction.execute("INSERT INTO charges VALUES ($1)", &[&"order-1042"]).await?;
/// permit.complete_in(statements.on(&transaction), Outcome::success("ch_1")).await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
///
/// Do not use it behind a pooler in transaction mode that keeps no prepared statements, nor with a pool that discards them
/// (`DISCARD ALL`) before it lends a connection again: there, hand in the transaction itself. What goes wrong there is an
/// error and a transaction that cannot commit, never a wrong record.
#[derive(Clone, Debug, Default)]
pub struct StatementCache {
    connections: Arc<Mutex<Connections>>,
}

/// A transaction whose statements are prepared: see [`StatementCache`].
pub struct PreparedTransaction<'a> {
    statements: &'a StatementCache,
    transaction: &'a Transaction<'a>,
}

impl StatementCache {
    /// Nothing is prepared yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same transaction, with statements that are prepared when its connection needs them for the first time.
    pub fn on<'a>(&'a self, transaction: &'a Transaction<'_>) -> PreparedTransaction<'a> {
        PreparedTransaction { statements: self, transaction }
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PreparedTransaction<'_> {
    /// The statement of the transaction's connection, which is prepared if it is not yet.
    async fn statement(
        &self,
        connection: &ConnectionId,
        text: &'static str,
        types: &[Type],
    ) -> Result<Statement> {
        if let Some(statement) = self.statements.lock().find(connection, text) {
            return Ok(statement);
        }
        let prepared = self.transaction.prepare_typed(text, types).await;
        let statement = prepared.map_err(|failed| error(failed, Sent::Perhaps))?;
        self.statements.lock().keep(connection.clone(), text, statement.clone());
        Ok(statement)
    }
}

impl Carrier for PreparedTransaction<'_> {
    async fn ask(&mut self, ask: Asked<'_>) -> Result<Option<SwapAnswer>> {
        let Some(connection) = ConnectionId::of(self.transaction).await else {
            return (&mut &*self.transaction).ask(ask).await;
        };
        let (text, values, types) = ask.question();
        let statement = self.statement(&connection, text, types).await?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let rows = self.transaction.query(&statement, &values).await.map_err(|failed| {
            if is_forgotten(&failed) {
                self.statements.lock().forget(&connection);
                return forgotten().caused_by(failed);
            }
            error(failed, Sent::Perhaps)
        })?;
        rows.first().map(SwapAnswer::read).transpose()
    }

    async fn refuse(&mut self) {
        (&mut &*self.transaction).refuse().await;
    }
}

/// Whether the server does not know the statement, or knows another one by its name.
fn is_forgotten(failed: &tokio_postgres::Error) -> bool {
    [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::PROTOCOL_VIOLATION]
        .iter()
        .any(|code| failed.code() == Some(code))
}

fn forgotten() -> Error {
    let message = "PostgreSQL does not know the prepared statement any more; roll back and ask again. If a pooler in \
                   transaction mode or DISCARD ALL is the cause, hand in the transaction without the StatementCache";
    Error::new(ErrorKind::Unavailable, message)
}

/// The statements of each connection.
#[derive(Debug)]
struct Connections<S = Statement> {
    by_id: HashMap<ConnectionId, Prepared<S>>,
    /// How often statements were asked for: what is used later has a higher number.
    uses: u64,
}

#[derive(Debug)]
struct Prepared<S> {
    /// By their text; a handful.
    statements: Vec<(&'static str, S)>,
    used_at: u64,
}

impl<S> Default for Connections<S> {
    fn default() -> Self {
        Self { by_id: HashMap::new(), uses: 0 }
    }
}

impl<S: Clone> Connections<S> {
    fn find(&mut self, connection: &ConnectionId, text: &str) -> Option<S> {
        self.uses = self.uses.saturating_add(1);
        let prepared = self.by_id.get_mut(connection)?;
        prepared.used_at = self.uses;
        prepared.statements.iter().find(|(known, _)| *known == text).map(|(_, statement)| statement.clone())
    }

    fn keep(&mut self, connection: ConnectionId, text: &'static str, statement: S) {
        if !self.by_id.contains_key(&connection) && self.by_id.len() >= CONNECTIONS_MAX {
            let oldest = self.by_id.iter().min_by_key(|(_, prepared)| prepared.used_at);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.by_id.remove(&oldest);
            }
        }
        let new = || Prepared { statements: Vec::new(), used_at: 0 };
        let prepared = self.by_id.entry(connection).or_insert_with(new);
        prepared.used_at = self.uses;
        prepared.statements.push((text, statement));
    }

    fn forget(&mut self, connection: &ConnectionId) {
        self.by_id.remove(connection);
    }
}

/// What tells a connection from all others, also from a later one whose process on the server has the same number: the
/// number and the random key that the server gave it, as they stand in a request to cancel.
///
/// If two connections were taken for one all the same, the server would not know the statement: the driver gives every
/// statement of this process a name of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ConnectionId(Vec<u8>);

impl ConnectionId {
    /// `None` if the server gave the connection no number. Nothing is sent: the request is written to memory.
    async fn of(transaction: &Transaction<'_>) -> Option<Self> {
        let written = Arc::default();
        let request = InMemory { written: Arc::clone(&written) };
        transaction.cancel_token().cancel_query_raw(request, InMemoryTls).await.ok()?;
        let written = std::mem::take(&mut *written.lock().unwrap_or_else(PoisonError::into_inner));
        (!written.ends_with(&[0; 8])).then_some(Self(written))
    }
}

/// A line that keeps what is written to it, and agrees to TLS: some configs ask for it before they write anything.
struct InMemory {
    written: Arc<Mutex<Vec<u8>>>,
}

impl AsyncWrite for InMemory {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for InMemory {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() > 0 {
            buffer.put_slice(b"S");
        }
        Poll::Ready(Ok(()))
    }
}

impl TlsStream for InMemory {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

struct InMemoryTls;

impl TlsConnect<InMemory> for InMemoryTls {
    type Stream = InMemory;
    type Error = Infallible;
    type Future = std::future::Ready<std::result::Result<InMemory, Infallible>>;

    fn connect(self, stream: InMemory) -> Self::Future {
        std::future::ready(Ok(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> ConnectionId {
        ConnectionId(number.to_le_bytes().to_vec())
    }

    #[test]
    fn connections_that_are_gone_make_room_for_those_that_are_used() {
        let mut connections = Connections::<usize>::default();
        for number in 0..CONNECTIONS_MAX * 3 {
            assert_eq!(connections.find(&id(number), "complete"), None);
            connections.keep(id(number), "complete", number);
            assert_eq!(connections.find(&id(0), "complete"), Some(0), "it is used all the time");
        }
        assert_eq!(connections.by_id.len(), CONNECTIONS_MAX);
        assert_eq!(connections.find(&id(1), "complete"), None, "it was not used for long");
    }

    #[test]
    fn a_statement_is_found_for_its_own_connection_and_text_alone() {
        let mut connections = Connections::<&str>::default();
        connections.keep(id(1), "complete", "a");
        connections.keep(id(1), "load", "b");
        connections.keep(id(2), "complete", "c");
        let mut find = |number, text| connections.find(&id(number), text);
        assert_eq!((find(1, "complete"), find(1, "load")), (Some("a"), Some("b")));
        assert_eq!((find(2, "complete"), find(2, "load"), find(3, "complete")), (Some("c"), None, None));
        connections.forget(&id(1));
        assert_eq!(
            (connections.find(&id(1), "load"), connections.find(&id(2), "complete")),
            (None, Some("c"))
        );
    }
}
