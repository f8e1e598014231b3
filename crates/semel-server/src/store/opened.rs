//! A store, and what tools want to know of it beyond the four methods.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use semel::store::{Finding, Store};
use semel::{Result, Semel};
use semel_file::FileStore;
use semel_postgres::PostgresStore;
use semel_redis::RedisStore;

use super::{file, redis};

/// A store that was opened by its address.
pub struct Opened {
    store: Arc<dyn Store>,
    concrete: Concrete,
}

/// What is known of the store as the one it is.
pub(super) enum Concrete {
    Memory,
    File(PathBuf, Arc<FileStore>),
    Postgres(PostgresStore),
    Redis(RedisStore),
}

/// Wake-ups from other processes, until it is dropped.
pub struct WakeUps {
    _postgres: semel_postgres::WakeUps,
}

/// What a migration did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Migrated {
    /// This store needs no schema.
    NothingToDo,
    /// Its schema went from one version to another, which may be the same.
    Schema {
        /// Before; `None` if there was none.
        from: Option<u32>,
        /// Now.
        to: u32,
    },
}

impl Opened {
    pub(super) fn new(store: Arc<dyn Store>, concrete: Concrete) -> Self {
        Self { store, concrete }
    }

    /// The store, to be shared with an engine.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// What the store's acknowledgements survive, in words for people.
    pub fn survives(&self) -> &'static str {
        match &self.concrete {
            Concrete::Memory => "nothing: it ends with its process",
            Concrete::File(..) => "kill -9, a crash of the machine, and loss of power",
            Concrete::Postgres(_) => {
                "kill -9, a crash of the server, loss of power, and a failover to a synchronous standby"
            }
            Concrete::Redis(store) => redis::survives(store.durability()),
        }
    }

    /// Looks at everything that the store's promise depends on.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        match &self.concrete {
            Concrete::Memory => Ok(Vec::new()),
            Concrete::File(folder, _) => file::check(folder),
            Concrete::Postgres(store) => store.check().await,
            Concrete::Redis(store) => store.check().await,
        }
    }

    /// Wakes those who wait in this engine as soon as another process settles their record, for as long as the answer is
    /// held; `None` for a store that cannot, where they look by themselves.
    pub fn wake_ups(&self, semel: &Semel) -> Option<WakeUps> {
        match &self.concrete {
            Concrete::Memory | Concrete::File(..) | Concrete::Redis(_) => None,
            Concrete::Postgres(store) => Some(WakeUps { _postgres: store.wake_ups(semel) }),
        }
    }

    /// How many records there are, if the store can say so without looking through all: the ones past their keep
    /// that no sweep has seen yet included.
    pub fn count(&self) -> Option<u64> {
        match &self.concrete {
            Concrete::Memory | Concrete::Postgres(_) | Concrete::Redis(_) => None,
            Concrete::File(_, store) => Some(store.records() as u64),
        }
    }
}

impl Deref for Opened {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}
