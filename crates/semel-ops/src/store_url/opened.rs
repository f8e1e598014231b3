//! A store, and what tools want to know of it beyond the four methods.

use std::any::Any;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use semel::store::{Filter, Finding, Store};
use semel::{RecordId, Result, Semel};

use crate::lookup::Counted;
use crate::lookup::walk::Walk;

/// An answer that takes a while.
pub(super) type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A store that was opened by its address.
pub struct Opened {
    store: Arc<dyn Store>,
    operated: Box<dyn OperatedStore>,
}

/// What tools want to know of a store beyond the four methods.
pub(super) trait OperatedStore: Send + Sync {
    fn survives(&self) -> &'static str;

    fn check(&self) -> Pending<'_, Vec<Finding>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn wake_ups(&self, _semel: &Semel) -> Option<WakeUps> {
        None
    }

    fn count(&self) -> Option<u64> {
        None
    }

    /// Counts all records, if the store has a faster way than page by page.
    fn count_all(&self, _oldest_max: usize) -> Option<Pending<'_, Counted>> {
        None
    }
}

/// Wake-ups from other processes, until it is dropped.
pub struct WakeUps(
    #[expect(dead_code, reason = "held, so that it is dropped with this")] Box<dyn Any + Send + Sync>,
);

impl WakeUps {
    #[cfg(feature = "postgres")]
    pub(super) fn until_dropped(listener: impl Any + Send + Sync) -> Self {
        Self(Box::new(listener))
    }
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
    pub(super) fn new(store: Arc<dyn Store>, operated: impl OperatedStore + 'static) -> Self {
        Self { store, operated: Box::new(operated) }
    }

    /// The store, to be shared with an engine.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// What the store's acknowledgements survive, in words for people.
    pub fn survives(&self) -> &'static str {
        self.operated.survives()
    }

    /// Looks at everything that the store's promise depends on.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        self.operated.check().await
    }

    /// Wakes those who wait in this engine as soon as another process settles their record, for as long as the answer is
    /// held; `None` for a store that cannot, where they look by themselves.
    pub fn wake_ups(&self, semel: &Semel) -> Option<WakeUps> {
        self.operated.wake_ups(semel)
    }

    /// Reads and counts all records, and remembers the `oldest_max` oldest that run or are held. `progress` is told where
    /// the walk is and how many records it has seen; a store that is not walked through in the order of ids tells
    /// nothing.
    pub async fn count_all(
        &self,
        oldest_max: usize,
        mut progress: impl FnMut(Option<RecordId>, u64),
    ) -> Result<Counted> {
        if let Some(counted) = self.operated.count_all(oldest_max) {
            return counted.await;
        }
        let mut counted = Counted::default();
        let mut walk = Walk::new(&*self.store, Filter::default(), None);
        while let Some(page) = walk.next().await? {
            counted.past = counted.past.saturating_add(page.past as u64);
            counted.damaged = counted.damaged.saturating_add(page.damaged.len() as u64);
            counted.add_all(&page.records, page.now, oldest_max);
            counted.as_of = Some(page.now);
            progress(walk.after(), counted.records());
        }
        Ok(counted)
    }

    /// How many records there are, if the store can say so without looking through all: the ones past their keep
    /// that no sweep has seen yet included.
    pub fn count(&self) -> Option<u64> {
        self.operated.count()
    }
}

impl Deref for Opened {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}
