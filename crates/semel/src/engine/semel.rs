//! The handle that callers hold.

use std::fmt;
use std::sync::Arc;

use super::batch::Batcher;
use super::builder::SemelBuilder;
use super::duplicates::Ledger;
use super::replays::Replays;
use super::wait::Waiters;
use crate::observe::{Counters, Stats};
use crate::policy::Policy;
use crate::record::PermitId;
use crate::store::Store;
use crate::stripe::Striped;

/// Makes work happen once. Cheap to clone: all clones share one store and one set of counters.
///
/// Its methods need a tokio runtime. Every one of them may be cancelled at any await: what is in flight to
/// the store goes on, and nothing runs a second time because of it.
#[derive(Clone)]
pub struct Semel {
    pub(super) inner: Arc<Inner>,
}

/// What all handles of one engine share.
pub(super) struct Inner {
    pub(super) store: Arc<dyn Store>,
    pub(super) batcher: Arc<Batcher>,
    pub(super) policy: Policy,
    /// The same text for each stripe: every claim takes a share of it, and counts that in.
    pub(super) owner: Striped<Arc<str>>,
    pub(super) duplicates: Ledger,
    pub(super) replays: Replays,
    pub(super) waiters: Waiters,
    pub(super) counters: Counters,
    pub(super) mint: Box<dyn Fn() -> u128 + Send + Sync>,
}

impl Semel {
    /// An engine over `store` with the default policy: lease 60 s, retention 24 h, a lapsed run is run again.
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).build_default()
    }

    /// An engine over `store` with choices of your own.
    pub fn builder(store: impl Store) -> SemelBuilder {
        SemelBuilder::new(Arc::new(store))
    }

    /// An engine over a store that others hold too.
    pub fn builder_shared(store: Arc<dyn Store>) -> SemelBuilder {
        SemelBuilder::new(store)
    }

    /// What this engine decided since it was built.
    pub fn stats(&self) -> Stats {
        self.inner.counters.stats()
    }
}

impl Inner {
    pub(super) fn mint(&self) -> PermitId {
        PermitId::new((self.mint)())
    }
}

impl fmt::Debug for Semel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semel")
            .field("owner", self.inner.owner.mine())
            .field("policy", &self.inner.policy)
            .finish_non_exhaustive()
    }
}
