//! Events of a stream, each processed in one transaction: the effect, the receipt and the offset.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use semel::{Error, ErrorKind, Outcome, Permit, Result};
use semel_stream::{Commit, Event, Failure, Handled, Task, Work, Worked, with_heartbeat};
use tokio_postgres::{Client, Transaction};

use crate::{CompleteIn, MoveOffsetIn, StatementCache};

/// What a handler's work in a transaction returns.
pub type InTransactionHandled<'a> = Pin<Box<dyn Future<Output = Handled> + Send + 'a>>;
/// A connection that is being made.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Client>> + Send>>;

type Connect = dyn Fn() -> Connecting + Send + Sync;
type Handler =
    dyn for<'a> Fn(&'a Event, &'a Permit, &'a Transaction<'a>) -> InTransactionHandled<'a> + Send + Sync;

/// Processes each event in a transaction: what the handler wrote in it, the receipt and, where everything before the event
/// is done, the offset commit together or not at all.
///
/// The records must be in the database that the handler writes to: the engine's store is PostgreSQL, and the connections
/// lead to the same one. Hand it to [`Consumer::run_with`](semel_stream::Consumer::run_with).
pub struct InTransaction {
    connect: Box<Connect>,
    handler: Box<Handler>,
    /// Connections that no event uses now.
    idle: Mutex<Vec<Client>>,
    statements: Option<StatementCache>,
}

impl InTransaction {
    /// Runs `handler` in transactions on connections that `connect` makes: one for each event that runs at the same time.
    pub fn new<C, F>(connect: C, handler: F) -> Self
    where
        C: Fn() -> Connecting + Send + Sync + 'static,
        F: for<'a> Fn(&'a Event, &'a Permit, &'a Transaction<'a>) -> InTransactionHandled<'a>
            + Send
            + Sync
            + 'static,
    {
        let (connect, handler) = (Box::new(connect), Box::new(handler));
        Self { connect, handler, idle: Mutex::default(), statements: None }
    }

    /// Prepares the statements of receipts and offsets once for each connection. Not for connections through a pooler in
    /// transaction mode: see [`StatementCache`].
    #[must_use]
    pub fn prepared(mut self) -> Self {
        self.statements = Some(StatementCache::new());
        self
    }

    async fn client(&self) -> Result<Client> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle.filter(|client| !client.is_closed()) {
            Some(client) => Ok(client),
            None => (self.connect)().await,
        }
    }

    fn keep(&self, client: Client) {
        if !client.is_closed() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        }
    }

    async fn run(
        &self,
        task: &Task<'_>,
        permit: &Permit,
        attempt: u32,
    ) -> Result<std::result::Result<Worked, Failure>> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await.map_err(|error| unreachable(&error))?;
        let outcome = match with_heartbeat(permit, (self.handler)(task.event, permit, &transaction)).await {
            Ok(outcome) => outcome,
            Err(failure) => {
                // If the rollback does not arrive, the connection is gone, and the transaction with it.
                drop(transaction.rollback().await);
                self.keep(client);
                return Ok(Err(failure));
            }
        };
        task.saw_effect();
        let worked = match &self.statements {
            Some(statements) => {
                written(task, permit, attempt, || statements.on(&transaction), outcome).await?
            }
            None => written(task, permit, attempt, || &transaction, outcome).await?,
        };
        if worked == Worked::Fenced {
            drop(transaction.rollback().await);
        } else {
            transaction.commit().await.map_err(|error| unknown(&error))?;
        }
        self.keep(client);
        Ok(Ok(worked))
    }
}

impl Work for InTransaction {
    fn work<'a>(&'a self, task: Task<'a>) -> Pin<Box<dyn Future<Output = Result<Worked>> + Send + 'a>> {
        Box::pin(task.run_claimed(async move |task, permit, attempt| {
            let ran = self.run(task, permit, attempt).await;
            if ran.is_err() || matches!(ran, Ok(Ok(Worked::Fenced))) {
                // If the transaction did commit, there is nothing to release; if it did not, no one has to wait for the lease.
                // While it is open, this waits for it.
                drop(permit.release("its transaction did not commit").await);
            }
            ran
        }))
    }
}

/// Writes the offset and the receipt into the transaction.
async fn written<T: crate::Transaction>(
    task: &Task<'_>,
    permit: &Permit,
    attempt: u32,
    transaction: impl Fn() -> T,
    outcome: Outcome,
) -> Result<Worked> {
    let mut worked = Worked::Ran { attempt };
    if let (Some(reader), Some(position)) = (task.reader, task.event.position) {
        let (key, commit) = reader.commit_move(position, Some(task.key), task.known_lag());
        let moved = task.pipeline.semel().move_offset_in(transaction(), key, commit).await?;
        worked = match reader.committed(moved)? {
            Commit::Committed(_) | Commit::Behind(_) => Worked::OffsetToo { attempt },
            Commit::Fenced(_) => return Ok(Worked::Fenced),
        };
    }
    permit.complete_in(transaction(), outcome).await?;
    Ok(worked)
}

fn unreachable(error: &tokio_postgres::Error) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("the handler's database cannot be reached: {error}; it is tried again"),
    )
}

fn unknown(error: &tokio_postgres::Error) -> Error {
    let message = format!("it is unknown whether the transaction committed: {error}; its receipt will tell");
    Error::new(ErrorKind::Unknown, message)
}
