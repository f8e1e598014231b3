//! A store, and what tools want to know of it beyond the four methods.

use std::any::Any;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use semel::store::{DurabilityDemand, Filter, Finding, SettingsWatch, Store};
use semel::{RecordId, Result, Semel};

use super::probe;
use crate::lookup::Counted;
use crate::lookup::walk::Walk;

/// An answer that takes a while.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A store that was opened by its address.
pub struct Opened {
    store: Arc<dyn Store>,
    operated: Box<dyn OperatedStore>,
    /// What happens to new claims while a setting breaks the promise.
    demand: DurabilityDemand,
    /// Keeps what was last found, for a store that does not keep it by itself.
    settings: Option<SettingsWatch>,
}

/// What tools want to know of a store beyond the four methods.
pub trait OperatedStore: Send + Sync {
    /// What acknowledgements survive, in words, by what was found.
    fn survives(&self) -> String;

    /// Reads everything that the promise depends on.
    fn check(&self) -> Pending<'_, Vec<Finding>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Whether a finding is a setting that what was acknowledged depends on, and not only room for more.
    fn is_setting(&self, _finding: &Finding) -> bool {
        true
    }

    /// The settings that break the promise, by the last check; `None` for a store that does not remember them.
    fn broken_settings(&self) -> Option<Arc<[Finding]>> {
        None
    }

    /// Whether new claims are refused while this setting is broken, whatever was demanded.
    fn always_refuses(&self, _broken: &Finding) -> bool {
        false
    }

    /// Whether a new claim could be taken now. `store` is this store, as an engine sees it.
    fn ready<'a>(&'a self, store: &'a Arc<dyn Store>) -> Pending<'a, ()> {
        Box::pin(probe::load(store))
    }

    /// Wakes those who wait in this engine as soon as another process settles their record, if the store can.
    fn wake_ups(&self, _semel: &Semel) -> Option<WakeUps> {
        None
    }

    /// How many records there are, if that is known without looking through all.
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
    /// A store, and what tools want to know of it.
    pub fn new(store: Arc<dyn Store>, operated: impl OperatedStore + 'static) -> Self {
        let demand = DurabilityDemand::AsConfigured;
        let settings = operated.broken_settings().is_none().then(|| SettingsWatch::new(demand, &[]));
        Self { store, operated: Box::new(operated), demand, settings }
    }

    /// The same store, whose new claims are refused or not while a setting breaks the promise.
    #[cfg(any(feature = "postgres", feature = "redis"))]
    pub(super) fn demanding(mut self, demand: DurabilityDemand) -> Self {
        self.demand = demand;
        self
    }

    /// The store, to be shared with an engine.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// What the store's acknowledgements survive, in words for people, by the settings that were found.
    pub fn survives(&self) -> String {
        self.operated.survives()
    }

    /// Reads everything that the store's promise depends on. A change since the last check is logged, and the gauge
    /// `semel_store_settings_broken` set.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        let findings = self.operated.check().await?;
        if let Some(settings) = &self.settings {
            let is_setting = |finding: &&Finding| self.operated.is_setting(finding);
            settings.note(&findings.iter().filter(is_setting).cloned().collect::<Vec<_>>());
        }
        Ok(findings)
    }

    /// The settings that break the promise, by the last check.
    pub fn broken_settings(&self) -> Arc<[Finding]> {
        let remembered = self.operated.broken_settings();
        remembered.or_else(|| self.settings.as_ref().map(SettingsWatch::broken)).unwrap_or_default()
    }

    /// Whether new claims are refused, because a setting breaks the promise by the last check.
    pub fn refuses_claims(&self) -> bool {
        let refuses = |broken: &Finding| {
            self.demand == DurabilityDemand::Demanded || self.operated.always_refuses(broken)
        };
        self.broken_settings().iter().any(refuses)
    }

    /// Whether a new claim could be taken now, found out by what a claim needs: on PostgreSQL and Redis, a small write. The
    /// error is that of the store; [`NotReady`](super::NotReady) names its cause.
    pub async fn ready(&self) -> Result<()> {
        self.operated.ready(&self.store).await
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
