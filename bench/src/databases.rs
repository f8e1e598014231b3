//! General-purpose embedded databases, each made to do what a store of idempotency records must do.
//!
//! - [`Database`]: what a database is asked, and what it answers: the same for all of them.
//! - [`Row`]: the bytes that they keep for one key, as many as semel keeps: a fixed head, then the texts.
//! - [`group_commit`](GroupCommit): all calls that wait become one transaction; only the database differs.
//! - [`fjall`](Fjall), [`redb`](Redb), [`sqlite`](Sqlite): the databases and their settings.

mod fjall;
mod group_commit;
mod redb;
mod sqlite;
#[cfg(test)]
mod tests;

pub(crate) use fjall::Fjall;
pub(crate) use group_commit::{GroupCommit, fill};
pub(crate) use redb::Redb;
pub(crate) use sqlite::Sqlite;

use anyhow::{Context, Result};
use semel::{Key, LEASE_DEFAULT, RETENTION_DEFAULT};

use crate::inputs::{self, Name, OPERATION, SCOPE};

const RUNNING: u8 = 1;
const DONE: u8 = 2;
const OWNER: &[u8] = b"pid 1042";
/// Version, moment of removal, state.
const HEAD_BYTES: usize = 17;
const FINGERPRINT_AT: usize = HEAD_BYTES + 6 * 8;
/// Where the length of the first text is: behind the fingerprint and the permit id.
const TEXTS_AT: usize = FINGERPRINT_AT + 32 + 16;

pub(crate) struct Row {
    pub(crate) id: Id,
    pub(crate) version: u64,
    pub(crate) until_micros: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Row {
    /// The row of a key that is running.
    pub(crate) fn running(number: u64, now_micros: u64) -> Result<Self> {
        let span = LEASE_DEFAULT.saturating_add(RETENTION_DEFAULT);
        Self::new(number, now_micros, now_micros + micros(span), RUNNING, OWNER)
    }

    /// The row of a key that is done, with its outcome.
    pub(crate) fn done(number: u64, now_micros: u64, outcome: &[u8]) -> Result<Self> {
        Self::new(number, now_micros, now_micros + micros(RETENTION_DEFAULT), DONE, outcome)
    }

    /// `last` is what only this state has: who runs, or the outcome.
    fn new(number: u64, now_micros: u64, until_micros: u64, state: u8, last: &[u8]) -> Result<Self> {
        let key = Key::scoped([SCOPE], OPERATION, Name::of(number).as_str())?;
        let version = u64::from(state);
        let mut bytes = Vec::with_capacity(TEXTS_AT + 64 + last.len());
        for part in [version, until_micros] {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        bytes.push(state);
        let spans = [micros(LEASE_DEFAULT), micros(RETENTION_DEFAULT)];
        // First seen, granted, changed; lease, retention; fence.
        for part in [now_micros, now_micros, now_micros, spans[0], spans[1], version] {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        bytes.extend_from_slice(&inputs::digest(number));
        bytes.extend_from_slice(&u128::from(number).to_le_bytes());
        for text in [SCOPE.as_bytes(), OPERATION.as_bytes(), Name::of(number).as_str().as_bytes(), last] {
            bytes.extend_from_slice(&u32::try_from(text.len())?.to_le_bytes());
            bytes.extend_from_slice(text);
        }
        Ok(Self { id: *key.id().as_bytes(), version, until_micros, bytes })
    }
}

pub(crate) struct Kept<'a>(&'a [u8]);

impl<'a> Kept<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn version(&self) -> Result<u64> {
        self.number(0)
    }

    pub(crate) fn until_micros(&self) -> Result<u64> {
        self.number(8)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.get(16) == Some(&DONE)
    }

    pub(crate) fn fingerprint(&self) -> Option<&'a [u8]> {
        self.0.get(FINGERPRINT_AT..FINGERPRINT_AT + 32)
    }

    /// Who runs, or the outcome: the fourth text.
    pub(crate) fn last(&self) -> Option<&'a [u8]> {
        let mut rest = self.0.get(TEXTS_AT..)?;
        let mut text: &[u8] = &[];
        for _ in 0..4 {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            (text, rest) = behind.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        }
        Some(text)
    }

    fn number(&self, at: usize) -> Result<u64> {
        let bytes = self.0.get(at..at + 8).context("a row has a head")?;
        Ok(u64::from_le_bytes(bytes.try_into()?))
    }
}

fn micros(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

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
