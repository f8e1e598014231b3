//! fjall: a log-structured merge tree.
//!
//! Settings: `SyncData` (fdatasync) with every batch; a cache of 1 GiB, which holds everything; the memtables, worker
//! threads and journal size that it has by default, since its authors chose them for writes like these. A batch does not
//! read its own writes, so what it has written so far is kept beside it. A sweep starts where the last one ended: from the
//! beginning, it would walk over the marks of everything that was ever removed, and take minutes.

use std::collections::HashMap;

use anyhow::Result;
use fjall::{Database as Tree, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use super::{Call, Database, Id, Kept, Place, Reply, Row, id_in, place};

const CACHE_BYTES: u64 = 1 << 30;

/// Rows by id, and an index of them by time.
pub(crate) struct Fjall {
    tree: Tree,
    rows: Keyspace,
    by_time: Keyspace,
    /// What is before this place is removed. Nothing comes there later: a row is kept for longer than until now.
    swept_until: Place,
}

impl Fjall {
    pub(crate) fn open(folder: &std::path::Path) -> Result<Self> {
        let tree = Tree::builder(folder).cache_size(CACHE_BYTES).open()?;
        let rows = tree.keyspace("rows", KeyspaceCreateOptions::default)?;
        let by_time = tree.keyspace("by_time", KeyspaceCreateOptions::default)?;
        Ok(Self { tree, rows, by_time, swept_until: [0; 40] })
    }

    fn batch(&self) -> OwnedWriteBatch {
        self.tree.batch().durability(Some(PersistMode::SyncData))
    }
}

/// A batch, and the rows that it will have written.
struct Overlaid<'a> {
    of: &'a Fjall,
    batch: OwnedWriteBatch,
    written: HashMap<Id, &'a [u8]>,
}

impl<'a> Overlaid<'a> {
    fn reply(&mut self, call: &'a Call) -> Result<Reply> {
        match call {
            Call::Claim { row, now_micros } => {
                let found = self.find(&row.id)?;
                match found.as_deref().map(Kept::new) {
                    Some(kept) if kept.until_micros()? > *now_micros => {
                        return Ok(Reply::Found(found.unwrap_or_default()));
                    }
                    Some(old) => self.put(row, Some(old.until_micros()?)),
                    None => self.put(row, None),
                }
                Ok(Reply::Written)
            }
            Call::Complete { expected, row } => {
                let found = self.find(&row.id)?;
                match found.as_deref().map(Kept::new) {
                    Some(kept) if kept.version()? == *expected => self.put(row, Some(kept.until_micros()?)),
                    _ => return Ok(Reply::Lost),
                }
                Ok(Reply::Written)
            }
        }
    }

    fn find(&self, id: &Id) -> Result<Option<Vec<u8>>> {
        if let Some(written) = self.written.get(id) {
            return Ok(Some(written.to_vec()));
        }
        Ok(self.of.rows.get(id)?.map(|bytes| bytes.to_vec()))
    }

    fn put(&mut self, row: &'a Row, old_until_micros: Option<u64>) {
        if let Some(until_micros) = old_until_micros {
            self.batch.remove(&self.of.by_time, place(until_micros, &row.id));
        }
        self.batch.insert(&self.of.by_time, place(row.until_micros, &row.id), []);
        self.batch.insert(&self.of.rows, row.id, row.bytes.as_slice());
        self.written.insert(row.id, &row.bytes);
    }
}

impl Database for Fjall {
    fn commit(&mut self, calls: &[Call]) -> Result<Vec<Reply>> {
        let mut overlaid = Overlaid { of: self, batch: self.batch(), written: HashMap::new() };
        let replies = calls.iter().map(|call| overlaid.reply(call)).collect::<Result<Vec<_>>>()?;
        overlaid.batch.commit()?;
        Ok(replies)
    }

    fn sweep(&mut self, now_micros: u64, limit: usize) -> Result<usize> {
        let mut batch = self.batch();
        let end = place(now_micros, &[0xff; 32]);
        let mut removed = 0;
        for found in self.by_time.range(self.swept_until..=end).take(limit) {
            let place = found.key()?;
            self.swept_until = place.as_ref().try_into()?;
            if let Some(id) = id_in(&place) {
                batch.remove(&self.rows, id);
            }
            batch.remove(&self.by_time, place);
            removed += 1;
        }
        batch.commit()?;
        Ok(removed)
    }
}
