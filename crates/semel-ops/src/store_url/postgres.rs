//! `postgres://…`, a store that many machines share.

use std::sync::Arc;

use semel::Semel;
use semel::store::Finding;
use semel_postgres::{Config, Durability, PostgresStore};

use super::address::Url;
use super::opened::{Migrated, Opened, OperatedStore, Pending, WakeUps};

impl OperatedStore for PostgresStore {
    fn survives(&self) -> &'static str {
        "kill -9, a crash of the server, loss of power, and a failover to a synchronous standby"
    }

    fn check(&self) -> Pending<'_, Vec<Finding>> {
        Box::pin(PostgresStore::check(self))
    }

    fn wake_ups(&self, semel: &Semel) -> Option<WakeUps> {
        Some(WakeUps::until_dropped(PostgresStore::wake_ups(self, semel)))
    }
}

pub(super) fn open(url: &Url) -> Pending<'_, Opened> {
    Box::pin(async { Ok(opened(PostgresStore::connect(url.with_password()).await?)) })
}

/// The store, also if its server cannot keep the promise: only to say why not.
pub(super) fn open_to_check(url: &Url) -> Pending<'_, Opened> {
    Box::pin(async {
        let config = Config::from_url(url.with_password())?.durability(Durability::AsConfigured);
        Ok(opened(PostgresStore::open(config).await?))
    })
}

pub(super) fn migrate(url: &Url) -> Pending<'_, Migrated> {
    Box::pin(async {
        let migrated = semel_postgres::migrate(url.with_password()).await?;
        Ok(Migrated::Schema { from: (migrated.from > 0).then_some(migrated.from), to: migrated.to })
    })
}

fn opened(store: PostgresStore) -> Opened {
    Opened::new(Arc::new(store.clone()), store)
}
