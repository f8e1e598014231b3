//! `redis://…`, a fast store that many machines share.

use std::sync::Arc;

use semel::store::{DurabilityDemand, Finding, Store};
use semel_redis::RedisStore;

use super::address::Url;
use super::opened::{Opened, OperatedStore, Pending};

impl OperatedStore for RedisStore {
    fn survives(&self) -> String {
        RedisStore::survives(self)
    }

    fn check(&self) -> Pending<'_, Vec<Finding>> {
        Box::pin(RedisStore::check(self))
    }

    fn broken_settings(&self) -> Option<Arc<[Finding]>> {
        Some(RedisStore::broken_settings(self))
    }

    /// A server that deletes records breaks every promise.
    fn always_refuses(&self, broken: &Finding) -> bool {
        broken.setting.starts_with("maxmemory-policy")
    }

    fn ready<'a>(&'a self, _store: &'a Arc<dyn Store>) -> Pending<'a, ()> {
        Box::pin(RedisStore::ready(self))
    }
}

pub(super) fn open(url: &Url) -> Pending<'_, Opened> {
    Box::pin(async {
        let store = RedisStore::connect(url.with_password()).await?;
        Ok(Opened::new(Arc::new(store.clone()), store).demanding(demand(url.parameter("durability"))))
    })
}

/// What the URL demands of the server's settings: nothing, unless it names a durability.
fn demand(durability: Option<&str>) -> DurabilityDemand {
    match durability {
        Some(_) => DurabilityDemand::Demanded,
        None => DurabilityDemand::AsConfigured,
    }
}
