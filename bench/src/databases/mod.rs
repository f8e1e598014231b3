//! General-purpose embedded databases, each made to do what a store of idempotency records must do.
//!
//! - [`Database`]: what a database is asked, and what it answers: the same for all of them.
//! - [`row`](Row): the bytes that they keep for one key, as many as semel keeps.
//! - [`group_commit`](GroupCommit): all calls that wait become one transaction; only the database differs.
//! - [`fjall`](Fjall), [`redb`](Redb), [`sqlite`](Sqlite): the databases and their settings.

mod fjall;
mod group_commit;
mod redb;
mod row;
mod sqlite;
#[cfg(test)]
mod tests;

pub(crate) use fjall::Fjall;
pub(crate) use group_commit::{GroupCommit, fill};
pub(crate) use redb::Redb;
pub(crate) use sqlite::Sqlite;

use anyhow::Result;
use row::Row;

pub(crate) type Id = [u8; 32];

/// One change that depends on what is there.
pub(crate) enum Call {
    /// Keep the row, unless there is one that still counts at this moment.
    Claim { row: Row, now_micros: u64 },
    /// Put the row in the place of the one that has the expected version.
    Complete { expected: u64, row: Row },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Written,
    /// Nothing changed: a claim found these bytes.
    Found(Vec<u8>),
    /// Nothing changed: a complete did not find the row that it expected.
    Lost,
}

/// A database that one thread writes to.
pub(crate) trait Database: Send + 'static {
    /// Carries out all calls in one transaction. When this returns, what was written is on the disk.
    fn commit(&mut self, calls: &[Call]) -> Result<Vec<Reply>>;

    /// Removes at most `limit` rows that no longer count, oldest first and durably, and answers how many.
    fn sweep(&mut self, now_micros: u64, limit: usize) -> Result<usize>;
}

/// A row's place in the index by time: the moment from which it may be removed, big end first, and its id.
pub(super) type Place = [u8; 40];

pub(super) fn place(until_micros: u64, id: &Id) -> Place {
    let mut place = [0; 40];
    let (until, rest) = place.split_at_mut(8);
    until.copy_from_slice(&until_micros.to_be_bytes());
    rest.copy_from_slice(id);
    place
}

pub(super) fn id_in(place: &[u8]) -> Option<Id> {
    place.get(8..)?.try_into().ok()
}
