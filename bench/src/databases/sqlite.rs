//! SQLite, through rusqlite with the SQLite that it brings along.
//!
//! Settings: WAL with `synchronous = FULL`; a page cache of 1 GiB, which holds everything; a checkpoint every 16,384
//! pages (64 MiB) instead of every 1,000, since each costs a sync and writes random pages; one process, so
//! `locking_mode = EXCLUSIVE` spares it the shared memory; statements are prepared once. rusqlite compiles it to call
//! fsync, where most systems' packages call fdatasync: `cargo xtask bench` compiles it like those.

use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::{Call, Database, Reply};

const SETTINGS: &str = "
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA cache_size = -1048576;
    PRAGMA wal_autocheckpoint = 16384;
    PRAGMA temp_store = MEMORY;
";
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS records (
        id BLOB PRIMARY KEY, version INTEGER NOT NULL, until INTEGER NOT NULL, row BLOB NOT NULL
    );
    CREATE INDEX IF NOT EXISTS records_until ON records (until);
";
const CLAIM: &str = "
    INSERT INTO records (id, version, until, row) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (id) DO UPDATE SET version = excluded.version, until = excluded.until, row = excluded.row
    WHERE until <= ?5
";
const FIND: &str = "SELECT row FROM records WHERE id = ?1";
const COMPLETE: &str = "UPDATE records SET version = ?2, until = ?3, row = ?4 WHERE id = ?1 AND version = ?5";
const SWEEP: &str = "
    DELETE FROM records WHERE rowid IN (SELECT rowid FROM records WHERE until <= ?1 ORDER BY until LIMIT ?2)
";

/// Rows by id, and an index of them by time.
pub(crate) struct Sqlite(Connection);

impl Sqlite {
    pub(crate) fn open(folder: &std::path::Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let connection = Connection::open(folder.join("records.sqlite"))?;
        connection.execute_batch(SETTINGS)?;
        connection.execute_batch(TABLES)?;
        Ok(Self(connection))
    }
}

fn reply(transaction: &Transaction<'_>, call: &Call) -> Result<Reply> {
    match call {
        Call::Claim { row, now_micros } => {
            let (version, until) = (row.version.cast_signed(), row.until_micros.cast_signed());
            let written = transaction.prepare_cached(CLAIM)?.execute(params![
                row.id,
                version,
                until,
                row.bytes,
                now_micros.cast_signed()
            ])?;
            if written == 1 {
                return Ok(Reply::Written);
            }
            let mut find = transaction.prepare_cached(FIND)?;
            let found = find.query_row([row.id], |found| found.get(0)).optional()?;
            Ok(found.map_or(Reply::Lost, Reply::Found))
        }
        Call::Complete { expected, row } => {
            let (version, until) = (row.version.cast_signed(), row.until_micros.cast_signed());
            let written = transaction.prepare_cached(COMPLETE)?.execute(params![
                row.id,
                version,
                until,
                row.bytes,
                expected.cast_signed()
            ])?;
            Ok(if written == 1 { Reply::Written } else { Reply::Lost })
        }
    }
}

impl Database for Sqlite {
    fn commit(&mut self, calls: &[Call]) -> Result<Vec<Reply>> {
        // It will write, so the lock is taken at once instead of being traded up.
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let replies = calls.iter().map(|call| reply(&transaction, call)).collect::<Result<Vec<_>>>()?;
        transaction.commit()?;
        Ok(replies)
    }

    fn sweep(&mut self, now_micros: u64, limit: usize) -> Result<usize> {
        let limit = i64::try_from(limit)?;
        Ok(self.0.prepare_cached(SWEEP)?.execute([now_micros.cast_signed(), limit])?)
    }
}
