//! `semel migrate`: makes what a store needs before it can be used, or brings it up to date.

use anyhow::{Context, Result};
use semel_ops::store_url::Migrated;

use crate::store_arg::StoreArg;
use crate::terminal::out;

pub(crate) async fn run(store: &StoreArg) -> Result<()> {
    let store = store.address_of_store()?;
    let migrated = store.migrate().await.with_context(|| {
        format!("cannot migrate {store}; the user needs the right to make tables in its schema")
    })?;
    out::line(&match migrated {
        Migrated::NothingToDo => format!("{store} needs no schema: there is nothing to do."),
        Migrated::Schema { from: None, to } => format!("{store} has its schema now, version {to}."),
        Migrated::Schema { from: Some(from), to } if from == to => {
            format!("{store} is up to date: its schema has version {to}.")
        }
        Migrated::Schema { from: Some(from), to } => {
            format!("{store} went from schema version {from} to {to}.")
        }
    })
}
