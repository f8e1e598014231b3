//! `redis://…`, a fast store that many machines share.

use std::sync::Arc;

use semel::store::{DurabilityDemand, Finding, Store};
use semel_redis::{Durability, RedisStore};

use super::address::Url;
use super::opened::{Opened, OperatedStore, Pending};
use super::probe;

impl OperatedStore for RedisStore {
    fn survives(&self) -> String {
        survives(self.durability()).to_owned()
    }

    fn check(&self) -> Pending<'_, Vec<Finding>> {
        Box::pin(RedisStore::check(self))
    }

    /// A server that deletes records breaks every promise.
    fn always_refuses(&self, broken: &Finding) -> bool {
        broken.setting.starts_with("maxmemory-policy")
    }

    fn ready<'a>(&'a self, store: &'a Arc<dyn Store>) -> Pending<'a, ()> {
        Box::pin(probe::write(store))
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

/// What a Redis with these settings survives.
fn survives(durability: Durability) -> &'static str {
    match durability {
        Durability::Always => {
            "kill -9, a crash of its machine, and loss of power; not a failover: see docs/stores.md"
        }
        Durability::EverySecond => "a restart; a second or two are lost with a crash, and more at a failover",
        Durability::SystemDecides => {
            "a restart; half a minute may be lost with the power, and more at a failover"
        }
        Durability::Snapshots => "nothing since the last snapshot, which may be minutes old",
        Durability::None => "nothing: this Redis keeps nothing on disk",
        Durability::Unreadable | _ => "nobody knows what: this Redis does not show its settings",
    }
}
