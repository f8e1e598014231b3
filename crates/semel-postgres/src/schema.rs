//! The tables: made, brought up to date without stopping their users, and checked before anything is written to them.

use std::time::Duration;

use semel::{Error, ErrorKind, Result};
use tokio_postgres::{Client, SimpleQueryMessage, Transaction};

use crate::config::Config;
use crate::error::{Sent, error, is_entangled};
use crate::servers::Servers;
use crate::wire::{Wire, text_rows};

/// What each version of the schema adds. A release never changes one that was released: it appends.
const MIGRATIONS: [&str; 3] =
    [include_str!("schema_1.sql"), include_str!("schema_2.sql"), include_str!("schema_3.sql")];
/// The version that this release reads and writes.
const VERSION: i32 = 3;

/// Indexes that the newest schema has beside those of version 1: name and definition.
///
/// Rows that are kept for ever: those that are held, or will be once their lease lapses, and few others. Its condition is
/// on no column that changes when an ordinary run is completed: a change of a column that any index names makes the server
/// write all of them.
const INDEXES: [(&str, &str); 1] =
    [("semel_records_kept_for_ever", "ON semel_records (id) WHERE keep_until IS NULL")];
/// Indexes that they replace. Processes of releases before list what is held without one, by looking at every row.
const REPLACED_INDEXES: [&str; 2] = ["semel_records_held", "semel_records_may_be_held"];

/// Only one process changes tables at a time: "semel" in ASCII.
const TABLES_LOCK: i64 = 0x0073_656d_656c;
/// Only one process builds indexes at a time. Another lock than that of the tables, which 0.1 waits for in a statement:
/// an index that is being built waits for that statement to end.
const INDEXES_LOCK: i64 = 0x7365_6d65_6c02;

/// How long a change of the tables waits for transactions that use them. Until it gets its lock or gives up, everything
/// that comes after it waits as well, so it gives up soon, lets the others pass, and tries again.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '300ms'";
/// How long others may pass.
const LOCK_PAUSE: Duration = Duration::from_millis(500);
/// How often the tables' lock is tried for: most of a minute.
const LOCK_TRIES_MAX: usize = 60;
/// How long to wait for another process that builds the indexes before looking again.
const INDEXES_PAUSE: Duration = Duration::from_millis(100);

const LEDGER: &str = "CREATE TABLE IF NOT EXISTS semel_schema (\
     version integer NOT NULL PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())";
const FOUND: &str = "SELECT to_regclass('semel_schema') IS NOT NULL";
const CURRENT: &str = "SELECT coalesce(max(version), 0) FROM semel_schema";

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version that was found; 0 if there was nothing.
    pub from: u32,
    /// The version that there is now.
    pub to: u32,
}

/// Creates the tables, or brings them up to date while other processes use them: columns are added without rewriting a
/// row, and indexes are built beside the writers. Harmless if there is nothing to do, safe from several processes at
/// once, and after a failure run it again.
pub async fn migrate(url: &str) -> Result<Migrated> {
    ensure_schema(&Config::from_url(url)?).await
}

/// The same with a config that is at hand. All statements are in the simple protocol, which prepares nothing, and no lock
/// outlives its transaction: it works through a pooler, too.
pub async fn ensure_schema(config: &Config) -> Result<Migrated> {
    let servers = Servers::new(config.clone())?;
    let mut wire = servers.connect(|_| {}).await?.wire;
    let from = migrate_tables(wire.client_mut()).await?;
    ensure_indexes(&servers, wire.client()).await?;
    Ok(Migrated { from: from.unsigned_abs(), to: VERSION.unsigned_abs() })
}

/// The first field of a statement's answer.
async fn first_field(client: &Client, text: &str) -> Result<Option<String>, tokio_postgres::Error> {
    Ok(first(&client.simple_query(text).await?))
}

fn first(messages: &[SimpleQueryMessage]) -> Option<String> {
    text_rows(messages).into_iter().flatten().next().flatten()
}

/// Brings the tables up to date, and returns the version that was found.
async fn migrate_tables(client: &mut Client) -> Result<i32> {
    let mut tries = 1..LOCK_TRIES_MAX;
    loop {
        let transaction = client.transaction().await.map_err(failure)?;
        match migrate_tables_in(transaction).await {
            Err(Failure::Server(failed)) if is_entangled(&failed) && tries.next().is_some() => {
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            Err(Failure::Server(failed)) if is_entangled(&failed) => {
                let message = "the tables could not be changed: a transaction has used semel_records for most of a \
                               minute; end it (pg_stat_activity shows it), then run `semel migrate` again";
                return Err(Error::new(ErrorKind::Unavailable, message).caused_by(failed));
            }
            Err(Failure::Server(failed)) => return Err(failure(failed)),
            Err(Failure::Refused(error)) => return Err(error),
            Ok(from) => return Ok(from),
        }
    }
}

/// Why a migration failed.
enum Failure {
    Server(tokio_postgres::Error),
    Refused(Error),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(failed: tokio_postgres::Error) -> Self {
        Self::Server(failed)
    }
}

async fn migrate_tables_in(transaction: Transaction<'_>) -> Result<i32, Failure> {
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({TABLES_LOCK})")).await?;
    transaction.batch_execute(LEDGER).await?;
    let from = first(&transaction.simple_query(CURRENT).await?);
    let from = from.and_then(|version| version.parse().ok()).unwrap_or(0);
    refuse_newer(from).map_err(Failure::Refused)?;
    transaction.batch_execute(LOCK_TIMEOUT).await?;
    for (version, migration) in (1_i32..).zip(MIGRATIONS) {
        if version > from {
            transaction.batch_execute(migration).await?;
            let note = format!("INSERT INTO semel_schema (version) VALUES ({version})");
            transaction.batch_execute(&note).await?;
        }
    }
    if from == 0 {
        // Tables that are not even committed have no users to go on.
        for (name, definition) in INDEXES {
            transaction.batch_execute(&format!("CREATE INDEX {name} {definition}")).await?;
        }
        for name in REPLACED_INDEXES {
            transaction.batch_execute(&format!("DROP INDEX IF EXISTS {name}")).await?;
        }
    }
    transaction.commit().await?;
    Ok(from)
}

/// Builds the indexes that are missing, and drops those that they replace, while others write.
async fn ensure_indexes(servers: &Servers, client: &Client) -> Result<()> {
    while !indexes_are_there(client).await.map_err(failure)? {
        // The lock has a transaction of its own on a connection of its own, because an index that is built beside writers
        // cannot be built in a transaction. It is asked for again and again, and never waited for: the process that
        // builds an index waits for every statement that was there before it, so also for one that waits for its lock.
        let mut lock = servers.connect(|_| {}).await?.wire;
        let transaction = lock.client_mut().transaction().await.map_err(failure)?;
        let text = format!("SELECT pg_try_advisory_xact_lock({INDEXES_LOCK})");
        let locked = first(&transaction.simple_query(&text).await.map_err(failure)?);
        if locked.as_deref() == Some("t") {
            build_indexes(client).await.map_err(failure)?;
        } else {
            tokio::time::sleep(INDEXES_PAUSE).await;
        }
        transaction.rollback().await.map_err(failure)?;
    }
    Ok(())
}

async fn build_indexes(client: &Client) -> Result<(), tokio_postgres::Error> {
    for (name, definition) in INDEXES {
        let state = index_state(client, name).await?;
        if state == IndexState::Unfinished {
            client.batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).await?;
        }
        if state != IndexState::Valid {
            client.batch_execute(&format!("CREATE INDEX CONCURRENTLY {name} {definition}")).await?;
        }
    }
    for name in REPLACED_INDEXES {
        client.batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).await?;
    }
    Ok(())
}

async fn indexes_are_there(client: &Client) -> Result<bool, tokio_postgres::Error> {
    for (name, _) in INDEXES {
        if index_state(client, name).await? != IndexState::Valid {
            return Ok(false);
        }
    }
    for name in REPLACED_INDEXES {
        if index_state(client, name).await? != IndexState::Absent {
            return Ok(false);
        }
    }
    Ok(true)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexState {
    Absent,
    /// Its building failed.
    Unfinished,
    Valid,
}

async fn index_state(client: &Client, name: &str) -> Result<IndexState, tokio_postgres::Error> {
    let text = format!("SELECT (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{name}'))");
    Ok(match first_field(client, &text).await?.as_deref() {
        None => IndexState::Absent,
        Some("t") => IndexState::Valid,
        Some(_) => IndexState::Unfinished,
    })
}

fn failure(failed: tokio_postgres::Error) -> Error {
    error(failed, Sent::Perhaps)
}

/// Refuses a database without the tables, or with others than this release knows.
pub(crate) async fn demand(wire: &Wire) -> Result<()> {
    let field = async |text| Ok::<_, Error>(wire.read(text).await?.into_iter().flatten().flatten().next());
    let is_there = field(FOUND).await?.as_deref() == Some("t");
    let version = if is_there { field(CURRENT).await? } else { None };
    let version = version.and_then(|version| version.parse().ok()).unwrap_or(0);
    refuse_newer(version)?;
    if version < VERSION {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "the database has version {version} of semel's schema and this release needs {VERSION}; run `semel \
                 migrate --store URL` once, or call `semel_postgres::migrate`"
            ),
        ));
    }
    Ok(())
}

fn refuse_newer(version: i32) -> Result<()> {
    if version <= VERSION {
        return Ok(());
    }
    let message = format!(
        "the database has version {version} of semel's schema, newer than this release knows ({VERSION}); upgrade \
         this process"
    );
    Err(Error::new(ErrorKind::Newer, message))
}
