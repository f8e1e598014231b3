//! redb: a copy-on-write B-tree.
//!
//! Settings: `Durability::Immediate`, which is its default, in one phase; a cache of 1 GiB, which holds everything.

use anyhow::Result;
use redb::{Durability, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::{Call, Database, Kept, Place, Reply, Row, id_in, place};

const CACHE_BYTES: usize = 1 << 30;
const ROWS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("rows");
const BY_TIME: TableDefinition<'_, &Place, ()> = TableDefinition::new("by_time");

/// Rows by id, and an index of them by time.
pub(crate) struct Redb(redb::Database);

impl Redb {
    pub(crate) fn open(folder: &std::path::Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let database = redb::Builder::new().set_cache_size(CACHE_BYTES).create(folder.join("rows.redb"))?;
        Ok(Self(database))
    }

    fn begin(&self) -> Result<WriteTransaction> {
        let mut transaction = self.0.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        Ok(transaction)
    }
}

struct Tables<'a> {
    rows: Table<'a, &'static [u8; 32], &'static [u8]>,
    by_time: Table<'a, &'static Place, ()>,
}

impl<'a> Tables<'a> {
    fn of(transaction: &'a WriteTransaction) -> Result<Self> {
        Ok(Self { rows: transaction.open_table(ROWS)?, by_time: transaction.open_table(BY_TIME)? })
    }

    fn reply(&mut self, call: &Call) -> Result<Reply> {
        let old_until_micros = match call {
            Call::Claim { row, now_micros } => {
                let found = self.rows.get(&row.id)?;
                let until =
                    found.as_ref().map(|found| Kept::new(found.value()).until_micros()).transpose()?;
                match found {
                    Some(found) if until > Some(*now_micros) => {
                        return Ok(Reply::Found(found.value().to_vec()));
                    }
                    _ => until,
                }
            }
            Call::Complete { expected, row } => {
                let Some(found) = self.rows.get(&row.id)? else { return Ok(Reply::Lost) };
                let kept = Kept::new(found.value());
                if kept.version()? != *expected {
                    return Ok(Reply::Lost);
                }
                Some(kept.until_micros()?)
            }
        };
        let (Call::Claim { row, .. } | Call::Complete { row, .. }) = call;
        self.put(row, old_until_micros)?;
        Ok(Reply::Written)
    }

    fn put(&mut self, row: &Row, old_until_micros: Option<u64>) -> Result<()> {
        if let Some(until_micros) = old_until_micros {
            self.by_time.remove(&place(until_micros, &row.id))?;
        }
        self.by_time.insert(&place(row.until_micros, &row.id), ())?;
        self.rows.insert(&row.id, row.bytes.as_slice())?;
        Ok(())
    }
}

impl Database for Redb {
    fn commit(&mut self, calls: &[Call]) -> Result<Vec<Reply>> {
        let transaction = self.begin()?;
        let mut tables = Tables::of(&transaction)?;
        let replies = calls.iter().map(|call| tables.reply(call)).collect::<Result<Vec<_>>>()?;
        drop(tables);
        // A commit syncs even if nothing was written.
        if replies.contains(&Reply::Written) {
            transaction.commit()?;
        } else {
            transaction.abort()?;
        }
        Ok(replies)
    }

    fn sweep(&mut self, now_micros: u64, limit: usize) -> Result<usize> {
        let transaction = self.begin()?;
        let mut tables = Tables::of(&transaction)?;
        let end = place(now_micros, &[0xff; 32]);
        let due = tables.by_time.range::<&Place>(..=&end)?.take(limit);
        let due = due.map(|found| Ok(*found?.0.value())).collect::<Result<Vec<Place>>>()?;
        for place in &due {
            tables.by_time.remove(place)?;
            if let Some(id) = id_in(place) {
                tables.rows.remove(&id)?;
            }
        }
        drop(tables);
        transaction.commit()?;
        Ok(due.len())
    }
}
