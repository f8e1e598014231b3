//! The layer: an engine, who its callers are, and what it was told.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use semel::{Key, Result, Semel};
use tokio::sync::{Notify, Semaphore};
use tower_layer::Layer;

use crate::budget::MemoryBudget;
use crate::caller::Principal;
use crate::quota::Usage;
use crate::routes::Routes;
use crate::service::Idempotency;
use crate::settings::Settings;

/// Gives every service below it safe retries. Cheap to clone.
///
/// ```
/// use semel::{Semel, store::MemoryStore};
/// use semel_http::{IdempotencyLayer, Principal};
///
/// let semel = Semel::new(MemoryStore::new());
/// let layer = IdempotencyLayer::new(semel, Principal::header("authorization"));
/// // axum::Router::new().route("/charges", post(charge)).layer(layer)
/// # let _ = layer;
/// ```
///
/// Put authentication *outside* of it, so that it runs first: a caller who lost its rights must not be shown a stored
/// response. In axum the layer that is added last runs first.
#[derive(Clone)]
pub struct IdempotencyLayer {
    pub(crate) inner: Arc<Inner>,
}

/// What all services of one layer share.
pub(crate) struct Inner {
    pub(crate) semel: Semel,
    pub(crate) principal: Principal,
    pub(crate) settings: Settings,
    pub(crate) routes: Routes,
    /// Carried over when settings are replaced.
    pub(crate) shared: Arc<Shared>,
}

/// What outlives a change of settings.
pub(crate) struct Shared {
    pub(crate) usage: Usage,
    pub(crate) budget: Arc<MemoryBudget>,
    /// Written twice for every run, so it is a plain number; those who wait for the last of them are rare.
    running: AtomicUsize,
    none_running: Notify,
    /// A place for each probe that may be in flight.
    pub(crate) probes: Semaphore,
}

impl IdempotencyLayer {
    /// The layer as the IETF draft has it, for every path. There is no layer without a word on who its callers are: a key
    /// belongs to a caller, and what nobody asked for would be shared by all.
    pub fn new(semel: Semel, principal: Principal) -> Self {
        let settings = Settings::default();
        let shared = Shared::new(&settings);
        let routes = Routes::others(settings.profile.rules.clone());
        Self { inner: Arc::new(Inner { semel, principal, settings, routes, shared: Arc::new(shared) }) }
    }

    /// The layer with settings of your own, or an error that names the route that could never work.
    pub fn with_settings(semel: Semel, principal: Principal, settings: Settings) -> Result<Self> {
        let shared = Arc::new(Shared::new(&settings));
        Self::build(semel, principal, settings, shared)
    }

    /// The same layer with other settings: the engine, the runs in flight and what quotas have counted stay.
    pub fn reloaded(&self, principal: Principal, settings: Settings) -> Result<Self> {
        Self::build(self.inner.semel.clone(), principal, settings, Arc::clone(&self.inner.shared))
    }

    fn build(semel: Semel, principal: Principal, settings: Settings, shared: Arc<Shared>) -> Result<Self> {
        let routes = Routes::new(&settings)?;
        // A scope that no key can have would refuse every request later.
        let host = settings.hosts.is_separate().then_some("host");
        let scope = settings.scope.iter().map(String::as_str).chain(host).chain(["caller"]);
        Key::scoped(scope, "http", "key")?;
        Ok(Self { inner: Arc::new(Inner { semel, principal, settings, routes, shared }) })
    }

    /// How many runs are in flight, those included whose clients have gone.
    pub fn running(&self) -> usize {
        self.inner.shared.running.load(Ordering::Acquire)
    }

    /// How many bytes of bodies are in memory now, of covered requests and of the responses to them.
    pub fn held_bytes(&self) -> usize {
        self.inner.shared.budget.held_bytes()
    }

    /// Waits until no run is in flight. For a server that is about to stop.
    pub async fn none_running(&self) {
        let shared = &self.inner.shared;
        loop {
            // Listening starts before the look: a run that ends in between is heard.
            let mut told = pin!(shared.none_running.notified());
            told.as_mut().enable();
            if self.running() == 0 {
                return;
            }
            told.await;
        }
    }

    /// The engine.
    pub fn semel(&self) -> &Semel {
        &self.inner.semel
    }

    /// What the layer was told.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }
}

impl Shared {
    fn new(settings: &Settings) -> Self {
        Self {
            usage: Usage::default(),
            budget: MemoryBudget::new(settings.held_bytes_max, settings.caller_held_bytes_max),
            running: AtomicUsize::new(0),
            none_running: Notify::new(),
            probes: Semaphore::new(settings.probes_in_flight_max.min(Semaphore::MAX_PERMITS)),
        }
    }

    /// Counts a run until what is returned is dropped.
    pub(crate) fn count_run(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::AcqRel);
        Running(Arc::clone(self))
    }
}

/// One run in flight.
pub(crate) struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none_running.notify_waiters();
        }
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Idempotency<S> {
        Idempotency::new(self.clone(), inner)
    }
}

impl fmt::Debug for IdempotencyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyLayer")
            .field("semel", &self.inner.semel)
            .field("principal", &self.inner.principal)
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}
