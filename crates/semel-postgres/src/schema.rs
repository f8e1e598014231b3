//! The tables: made, brought up to date, and looked at before anything is written to them.

use semel::{Error, ErrorKind, Result};
use tokio_postgres::Client;

use crate::config::Config;
use crate::error::{Sent, error};
use crate::session::connect;

/// What each version of the schema adds. A release never changes one that was released: it appends.
const MIGRATIONS: [&str; 1] = [include_str!("schema.sql")];
/// The version that this release reads and writes.
const VERSION: i32 = 1;

/// Only one process migrates at a time: "semel" in ASCII.
const LOCK: i64 = 0x0073_656d_656c;

const LEDGER: &str = "CREATE TABLE IF NOT EXISTS semel_schema (\
     version integer NOT NULL PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())";
const FOUND: &str = "SELECT CASE WHEN to_regclass('semel_schema') IS NULL THEN 0 ELSE 1 END";
const CURRENT: &str = "SELECT coalesce(max(version), 0) FROM semel_schema";

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version that was found; 0 if there was nothing.
    pub from: u32,
    /// The version that there is now.
    pub to: u32,
}

/// Makes the tables, or brings them up to date, all in one transaction. Harmless if there is nothing to do, and safe
/// from several processes at once.
pub async fn migrate(url: &str) -> Result<Migrated> {
    ensure_schema(&Config::from_url(url)?).await
}

/// The same with a config that is at hand.
pub async fn ensure_schema(config: &Config) -> Result<Migrated> {
    let mut client = connect(config).await?;
    let failed = |failed| error(failed, Sent::Perhaps);
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
    transaction.batch_execute(LEDGER).await.map_err(failed)?;
    let from: i32 = transaction.query_one(CURRENT, &[]).await.map_err(failed)?.get(0);
    refuse_newer(from)?;
    for (version, migration) in (1_i32..).zip(MIGRATIONS) {
        if version > from {
            transaction.batch_execute(migration).await.map_err(failed)?;
            let note = "INSERT INTO semel_schema (version) VALUES ($1)";
            transaction.execute(note, &[&version]).await.map_err(failed)?;
        }
    }
    transaction.commit().await.map_err(failed)?;
    Ok(Migrated { from: from.unsigned_abs(), to: VERSION.unsigned_abs() })
}

/// Refuses a database without the tables, or with others than this release knows.
pub(crate) async fn demand(client: &Client) -> Result<()> {
    let failed = |failed| error(failed, Sent::No);
    let is_there: i32 = client.query_one(FOUND, &[]).await.map_err(failed)?.get(0);
    let version: i32 =
        if is_there == 0 { 0 } else { client.query_one(CURRENT, &[]).await.map_err(failed)?.get(0) };
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
        "the database has version {version} of semel's schema, newer than this release knows ({VERSION}); upgrade it"
    );
    Err(Error::new(ErrorKind::Newer, message))
}
