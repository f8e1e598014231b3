//! The handler that every contestant has, which takes a small JSON order and answers with a charge of about 200 bytes, and
//! what is put around it, each as its own documentation says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use cratestack_axum::idempotency::{IdempotencyLayer as CratestackLayer, IdempotencyStore};
use cratestack_core::{CratestackError, IdempotencyRecord, ReservationOutcome};
use cratestack_redis::RedisIdempotencyStore;
use cratestack_sqlx::sqlx::types::Uuid;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ruts::store::moka::MokaStore;
use ruts::{CookieOptions, SessionLayer};
use semel::Semel;
use semel_http::{IdempotencyLayer, Principal};
use serde::{Deserialize, Serialize};

pub(super) const CHARGES: &str = "/charges";
pub(super) const RUNS: &str = "/runs";
/// Where runs are counted from: all of their numbers have as many digits.
pub(super) const FIRST_RUN: u64 = 1_000_000_000;
pub(super) const ORDER: &str = "order-";
const DAY: Duration = Duration::from_hours(24);

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) name: String,
    pub(super) amount: u64,
    pub(super) currency: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Charge {
    id: String,
    object: &'static str,
    order: String,
    amount: u64,
    currency: String,
    status: &'static str,
    captured: bool,
    description: &'static str,
    /// Which run of the handler this was: no two answers are the same, unless one is a replay.
    run: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Runs(Arc<AtomicU64>);

impl Charge {
    pub(super) fn of(order: Order, run: u64) -> Self {
        let name = order.name.strip_prefix(ORDER).unwrap_or(&order.name);
        Self {
            id: format!("ch_{name}"),
            object: "charge",
            order: order.name,
            amount: order.amount,
            currency: order.currency,
            status: "succeeded",
            captured: true,
            description: "A pair of shoes, delivered tomorrow",
            run,
        }
    }
}

async fn charge(State(Runs(runs)): State<Runs>, Json(order): Json<Order>) -> impl IntoResponse {
    let charge = Charge::of(order, FIRST_RUN + runs.fetch_add(1, Ordering::Relaxed));
    (StatusCode::CREATED, [(LOCATION, format!("{CHARGES}/{}", charge.id))], Json(charge))
}

pub(super) fn charges(runs: Runs) -> Router {
    Router::new().route(CHARGES, post(charge)).with_state(runs)
}

/// The count of runs; merged outside the layers.
pub(super) fn counts(Runs(runs): Runs) -> Router {
    Router::new().route(RUNS, get(async move || runs.load(Ordering::Relaxed).to_string()))
}

/// What is around the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Layer {
    Bare,
    SemelMemory,
    SemelFile,
    AxumIdempotent,
    CratestackRedis,
    CratestackMap,
}

pub(super) fn router(layer: Layer, location: &str) -> Result<Router> {
    let runs = Runs::default();
    let charges = charges(runs.clone());
    let layered = match layer {
        Layer::Bare => charges,
        Layer::SemelMemory => semel(charges, Semel::new(crate::contestants::roomy())),
        Layer::SemelFile => semel(charges, Semel::new(semel_file::FileStore::open(location)?)),
        Layer::AxumIdempotent => axum_idempotent(charges),
        Layer::CratestackRedis => cratestack(charges, RedisIdempotencyStore::open(location, "bench")?),
        Layer::CratestackMap => cratestack(charges, MapStore::default()),
    };
    Ok(layered.merge(counts(runs)))
}

/// semel's layer, as a service would add it: everything by default but the bounds of the memory store.
fn semel(charges: Router, semel: Semel) -> Router {
    charges.layer(IdempotencyLayer::new(semel, Principal::header("authorization")))
}

/// The layer of axum-idempotent, as its front page has it: cookies outside, then sessions, then the layer.
///
/// In its quicker mode, where the header is the key and the request is not read; on the store in this process, which is the
/// quickest that it has. It claims nothing before the handler runs: two at once both run.
fn axum_idempotent(charges: Router) -> Router {
    // Room for every session that there is. A record is one field of the caller's session, and a write looks at all of
    // them. Sessions are therefore many and short here, which suits it: see `CALLERS`.
    let store = Arc::new(MokaStore::builder().max_capacity(1_000_000).build());
    let options = IdempotentOptions::new(24 * 60 * 60).use_idempotency_key_header(None, false);
    let cookie = CookieOptions::build().name(super::requests::SESSION_COOKIE).session_cookie().path("/");
    charges
        .layer(IdempotentLayer::<MokaStore>::new(options))
        .layer(SessionLayer::new(store).with_cookie_options(cookie))
        .layer(tower_cookies::CookieManagerLayer::new())
}

/// The layer of cratestack-axum, as it is published. It tells callers apart by `Authorization`.
///
/// It has no store in memory. Of the two stores that are published for it the one on Redis is the quicker. So that its layer
/// is not judged by the way to a server alone, it is also measured on a map that is written here for it.
fn cratestack(charges: Router, store: impl IdempotencyStore) -> Router {
    charges.layer(CratestackLayer::new(Arc::new(store), DAY))
}

/// A store for cratestack-axum that is quicker than those it is published with: a map in this process that forgets nothing.
#[derive(Default)]
struct MapStore(DashMap<(String, String), MapRecord>);

struct MapRecord {
    token: Uuid,
    request: [u8; 32],
    expires_at: SystemTime,
    answer: Option<Answer>,
}

#[derive(Clone)]
struct Answer {
    status: u16,
    headers: Vec<u8>,
    body: Vec<u8>,
}

fn id(principal: &str, key: &str) -> (String, String) {
    (principal.to_owned(), key.to_owned())
}

#[async_trait::async_trait]
impl IdempotencyStore for MapStore {
    async fn reserve_or_fetch(
        &self,
        principal: &str,
        key: &str,
        request: [u8; 32],
        expires_at: SystemTime,
    ) -> Result<ReservationOutcome, CratestackError> {
        let found = match self.0.entry(id(principal, key)) {
            Entry::Vacant(vacant) => {
                let token = Uuid::new_v4();
                vacant.insert(MapRecord { token, request, expires_at, answer: None });
                return Ok(ReservationOutcome::Reserved { token });
            }
            Entry::Occupied(found) => found,
        };
        let kept = found.get();
        if kept.request != request {
            return Ok(ReservationOutcome::Conflict);
        }
        let Some(Answer { status, headers, body }) = kept.answer.clone() else {
            return Ok(ReservationOutcome::InFlight);
        };
        Ok(ReservationOutcome::Replay(IdempotencyRecord {
            principal_fingerprint: principal.to_owned(),
            key: key.to_owned(),
            request_hash: request,
            response_status: status,
            response_headers: headers,
            response_body: body,
            created_at: kept.expires_at,
            expires_at: kept.expires_at,
        }))
    }

    async fn complete(
        &self,
        principal: &str,
        key: &str,
        token: Uuid,
        status: u16,
        headers: &[u8],
        body: &[u8],
    ) -> Result<(), CratestackError> {
        if let Some(mut kept) = self.0.get_mut(&id(principal, key)).filter(|kept| kept.token == token) {
            kept.answer = Some(Answer { status, headers: headers.to_vec(), body: body.to_vec() });
        }
        Ok(())
    }

    async fn release(&self, principal: &str, key: &str, token: Uuid) -> Result<(), CratestackError> {
        self.0.remove_if(&id(principal, key), |_, kept| kept.token == token);
        Ok(())
    }
}
