//! Which record is meant: by its key, or by the beginning of its id.

use anyhow::{Result, bail};
use semel::Key;
use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Filter, Store};
pub(crate) use semel_ops::lookup::IdPrefix;

use semel_ops::lookup::walk::Walk;

/// Which record is meant.
#[derive(Clone, Debug)]
pub(crate) enum Which {
    /// The one of this key.
    Key(Key),
    /// The only one whose id begins so.
    Id(IdPrefix),
}

/// A record, and the store's now when it was read.
pub(super) struct Found {
    pub(super) record: Record,
    pub(super) now: Timestamp,
}

impl Which {
    /// The record, if there is one that counts.
    pub(super) async fn find(&self, store: &dyn Store) -> Result<Found> {
        match self {
            Self::Key(key) => by_key(key, store).await,
            Self::Id(prefix) => by_id(prefix, store).await,
        }
    }
}

async fn by_key(key: &Key, store: &dyn Store) -> Result<Found> {
    let answer = store.load(vec![key.id()]).await?;
    let found = answer.value.into_iter().next().flatten();
    match found.filter(|record| record.key == *key && record.is_live(answer.now)) {
        Some(record) => Ok(Found { record, now: answer.now }),
        None => bail!(
            "this store has no record of that key: nobody has claimed it, or its retention is over. Scope, operation \
             and name must be exact; `semel keys list --operation {}` shows what there is",
            key.operation()
        ),
    }
}

async fn by_id(prefix: &IdPrefix, store: &dyn Store) -> Result<Found> {
    let (before, last) = (prefix.before_first(), prefix.last());
    let mut walk = Walk::new(store, Filter::default(), before);
    let mut found: Vec<Found> = Vec::new();
    while let Some(page) = walk.next_of(2).await? {
        for record in page.records.into_iter().filter(|record| record.key.id() <= last) {
            found.push(Found { record, now: page.now });
        }
        if found.len() > 1 {
            let also: Vec<_> = found.iter().map(|found| found.record.key.id().to_string()).collect();
            bail!("more than one id begins with {prefix}; give more digits:\n  {}", also.join("\n  "));
        }
        if walk.after().is_none_or(|after| after >= last) {
            break;
        }
    }
    match found.pop() {
        Some(found) => Ok(found),
        None => bail!(
            "this store has no record whose id begins with {prefix}: its retention is over, or it is in another store. \
             `semel keys list` shows what there is"
        ),
    }
}
