//! A store that is there, or what to do about it.

use anyhow::{Result, anyhow};
use semel::{Error, ErrorKind, Semel};
use semel_ops::store_url::{Address, Opened};
use semel_stream::Pipeline;

use crate::args::Scope;

/// The store, which must be there: a mistyped address must not become an empty store.
pub(crate) async fn open_existing(address: &Address) -> Result<Opened> {
    address.open_existing().await.map_err(|error| explained(address, error))
}

/// The store, also if its server cannot keep the promise.
pub(crate) async fn open_to_check(address: &Address) -> Result<Opened> {
    address.open_to_check().await.map_err(|error| explained(address, error))
}

/// The store, which is made if it is a folder and missing.
pub(crate) async fn open(address: &Address) -> Result<Opened> {
    address.open().await.map_err(|error| explained(address, error))
}

/// A pipeline with its receipts and offsets in this store.
pub(crate) fn pipeline(store: &Opened, name: &str, scope: Option<Scope>) -> Result<Pipeline> {
    let semel = Semel::builder_shared(store.store()).build()?;
    Ok(Pipeline::builder(&semel, name).scope(scope.unwrap_or_default()).build()?)
}

fn explained(address: &Address, error: Error) -> anyhow::Error {
    let kind = error.kind();
    let error = anyhow!(error);
    match next_step(address, kind) {
        Some(next) => anyhow!("cannot open {address}: {error:#}\n{next}"),
        None => anyhow!("cannot open {address}: {error:#}"),
    }
}

fn next_step(address: &Address, kind: ErrorKind) -> Option<&'static str> {
    match (address, kind) {
        (Address::File(_), ErrorKind::Invalid) => Some(
            "Name the store with --store URL or SEMEL_STORE. A folder becomes a store when a program first uses it.",
        ),
        (Address::File(_), ErrorKind::Unavailable) => Some(
            "While a program holds the folder, only that program can look into it: `Semel::scan`, `Semel::resolve`.",
        ),
        (Address::Postgres(_) | Address::Redis(_), ErrorKind::Unavailable) => {
            Some("Is the server up, and is this its URL? It comes from --store or SEMEL_STORE.")
        }
        _ => None,
    }
}
