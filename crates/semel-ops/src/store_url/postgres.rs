//! `postgres://…`, a store that many machines share.

use std::sync::Arc;

use semel::Semel;
use semel::store::{DurabilityDemand, Finding, Store};
use semel_postgres::{Config, Durability, PostgresStore};

use super::address::Url;
use super::opened::{Migrated, Opened, OperatedStore, Pending, WakeUps};
use super::probe;

impl OperatedStore for PostgresStore {
    fn survives(&self) -> String {
        PostgresStore::survives(self)
    }

    fn check(&self) -> Pending<'_, Vec<Finding>> {
        Box::pin(PostgresStore::check(self))
    }

    fn broken_settings(&self) -> Option<Arc<[Finding]>> {
        Some(PostgresStore::broken_settings(self))
    }

    fn ready<'a>(&'a self, store: &'a Arc<dyn Store>) -> Pending<'a, ()> {
        Box::pin(probe::write(store))
    }

    fn wake_ups(&self, semel: &Semel) -> Option<WakeUps> {
        Some(WakeUps::until_dropped(PostgresStore::wake_ups(self, semel)))
    }
}

pub(super) fn open(url: &Url) -> Pending<'_, Opened> {
    Box::pin(async {
        let store = opened(PostgresStore::connect(url.with_password()).await?);
        Ok(store.demanding(demand(url.parameter("durability"))))
    })
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

/// What the URL demands of the server's settings: the promise, unless it says otherwise.
fn demand(durability: Option<&str>) -> DurabilityDemand {
    match durability {
        Some("as-configured") => DurabilityDemand::AsConfigured,
        _ => DurabilityDemand::Demanded,
    }
}
