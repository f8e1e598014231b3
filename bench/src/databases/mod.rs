//! General-purpose embedded databases, each made to do what a store of idempotency records must do.
//!
//! - [`call`](Database): what a database is asked, and what it answers: the same for all of them.
//! - [`row`](Row): the bytes that they keep for one key, as many as semel keeps.
//! - [`group_commit`](GroupCommit): all calls that wait become one transaction; only the database differs.
//! - [`fjall`](Fjall), [`redb`](Redb), [`sqlite`](Sqlite): the databases and their settings.

mod call;
mod fjall;
mod group_commit;
mod redb;
mod row;
mod sqlite;
#[cfg(test)]
mod tests;

pub(crate) use call::Database;
pub(crate) use fjall::Fjall;
pub(crate) use group_commit::{GroupCommit, fill};
pub(crate) use redb::Redb;
pub(crate) use sqlite::Sqlite;
