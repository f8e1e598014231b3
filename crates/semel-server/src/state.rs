//! What the API and the dashboard work on: one engine, its store, and who may ask.

use std::sync::Arc;

use semel::Semel;

use crate::access::{Audit, Tokens};
use crate::api::ApiState;
use crate::monitoring::{Census, Live, Rates, StoreHealth};
use crate::serve::Waits;
use semel_ops::store_url::Opened;

/// What the API and the dashboard work on.
pub struct AppState {
    /// Decides.
    pub semel: Semel,
    /// Where records live, and what it promises.
    pub store: Arc<Opened>,
    /// Its address without secrets, for people.
    pub store_address: String,
    /// Who may ask.
    pub tokens: Tokens,
    /// Where operators' actions are written down.
    pub audit: Audit,
    /// Whether the store takes claims, and whether its server's settings keep the promise.
    pub health: StoreHealth,
    /// How many records are in which state.
    pub census: Census,
    /// Decisions a second.
    pub rates: Rates,
    /// Decisions as they are made.
    pub live: Live,
    /// Requests that wait, and whether the server is about to stop.
    pub waits: Waits,
    /// What the API keeps between requests.
    pub api: ApiState,
}

impl AppState {
    /// Everything that is looked at begins now, on the runtime of whoever calls.
    pub fn new(semel: Semel, store: Arc<Opened>, store_address: String, tokens: Tokens) -> Self {
        let (census, rates) = (Census::start(store.store(), &tokens), Rates::start(&semel));
        let health = StoreHealth::start(Arc::clone(&store), StoreHealth::CHECK_EVERY);
        Self {
            semel,
            store,
            store_address,
            tokens,
            audit: Audit::to_log(),
            health,
            census,
            rates,
            live: Live::default(),
            waits: Waits::default(),
            api: ApiState::default(),
        }
    }
}
