//! Which record is meant: by its key, or by the beginning of its id.

use std::sync::Arc;

use anyhow::{Result, bail};
use semel::Key;
use semel::clock::Timestamp;
use semel::record::Record;
use semel::store::{Filter, Store};
use semel_ops::format::scope;
use semel_ops::lookup::walk::{self, Walk};
use semel_ops::lookup::{IdPrefix, Selection};

use super::filter::FilterArgs;
use crate::args::{Scope, refused};

/// Which record is meant.
#[derive(Debug, clap::Args)]
pub(super) struct KeyArg {
    /// The beginning of the record's id, as `semel keys list` shows it
    #[arg(value_name = "ID", conflicts_with_all = ["scope", "operation", "name"], required_unless_present = "operation")]
    id: Option<IdPrefix>,
    /// The parts of the key's scope, outermost first; `\/` for a slash inside a part
    #[arg(long, value_name = "A/B", value_parser = scope::parse, requires = "operation")]
    scope: Option<Scope>,
    /// The key's operation
    #[arg(long, value_name = "WORD", requires = "name")]
    operation: Option<String>,
    /// The key's name
    #[arg(long, value_name = "TEXT", requires = "operation")]
    name: Option<String>,
}

/// Which record is meant, or which ones.
#[derive(Debug, clap::Args)]
pub(super) struct KeysArg {
    /// The beginning of the record's id, as `semel keys list` shows it; or give conditions for many
    #[arg(value_name = "ID", conflicts_with_all = ["FilterArgs"])]
    id: Option<IdPrefix>,
    #[command(flatten)]
    filter: FilterArgs,
}

/// What is acted on.
pub(super) enum Target {
    /// One record.
    One(Selector),
    /// Every record that meets the conditions.
    Many(Selection),
}

impl KeysArg {
    pub(super) fn target(self) -> Result<Target, clap::Error> {
        if let Some(id) = self.id {
            return Ok(Target::One(Selector::Id(id)));
        }
        if self.filter.names_one_key() {
            let FilterArgs { scope, operation, name, .. } = self.filter;
            let key = Key::scoped(
                scope.unwrap_or_default(),
                operation.as_deref().unwrap_or_default(),
                name.as_deref().unwrap_or_default(),
            );
            return key
                .map(|key| Target::One(Selector::Key(key)))
                .map_err(|error| refused(&error.to_string()));
        }
        let selection = self.filter.selection();
        if selection.is_everything() {
            return Err(refused(
                "which keys? Give an ID, or conditions such as --state held; `semel keys list` takes the same and shows them",
            ));
        }
        Ok(Target::Many(selection.held_by_default()))
    }
}

/// What the arguments mean.
pub(super) enum Selector {
    /// The one of this key.
    Key(Key),
    /// The only one whose id begins so.
    Id(IdPrefix),
}

/// A record, and the store's now when it was read.
pub(crate) struct Found {
    pub(crate) record: Arc<Record>,
    pub(crate) now: Timestamp,
}

impl KeyArg {
    pub(super) fn selector(self) -> Result<Selector, clap::Error> {
        match (self.id, self.operation, self.name) {
            (Some(id), _, _) => Ok(Selector::Id(id)),
            (None, Some(operation), Some(name)) => {
                let key = Key::scoped(self.scope.unwrap_or_default(), &operation, &name);
                key.map(Selector::Key).map_err(|error| refused(&error.to_string()))
            }
            _ => Err(refused("which key? Give its id, or --operation and --name")),
        }
    }
}

impl Selector {
    /// The record, if there is one that counts.
    pub(super) async fn find(&self, store: &dyn Store) -> Result<Found> {
        match self {
            Self::Key(key) => by_key(key, store).await,
            Self::Id(prefix) => by_id(prefix, store).await,
        }
    }
}

async fn by_key(key: &Key, store: &dyn Store) -> Result<Found> {
    let found = walk::live(store, key.id()).await?;
    match found.filter(|(record, _)| record.key == *key) {
        Some((record, now)) => Ok(Found { record, now }),
        None => bail!(
            "this store has no record of that key: it was never claimed, or its retention is over. Scope, operation \
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
        if let Some((id, error)) = page.damaged.into_iter().find(|(id, _)| *id <= last) {
            return Err(anyhow::Error::new(error).context(format!("the record {id} cannot be read")));
        }
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
