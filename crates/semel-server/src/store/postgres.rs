//! `postgres://…`, a store that many machines share.

use std::sync::Arc;

use semel::Result;
use semel_postgres::{Config, Durability, PostgresStore};

use super::opened::{Concrete, Migrated, Opened};
use super::url::Url;

pub(super) async fn open(url: &Url) -> Result<Opened> {
    Ok(opened(PostgresStore::connect(url.with_password()).await?))
}

/// The store, also if its server cannot keep the promise: only to say why not.
pub(super) async fn open_to_check(url: &Url) -> Result<Opened> {
    let config = Config::from_url(url.with_password())?.durability(Durability::AsConfigured);
    Ok(opened(PostgresStore::open(config).await?))
}

pub(super) async fn migrate(url: &Url) -> Result<Migrated> {
    let migrated = semel_postgres::migrate(url.with_password()).await?;
    Ok(Migrated::Schema { from: (migrated.from > 0).then_some(migrated.from), to: migrated.to })
}

fn opened(store: PostgresStore) -> Opened {
    Opened::new(Arc::new(store.clone()), Concrete::Postgres(store))
}
