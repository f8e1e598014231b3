//! The handler that every contestant has: a small JSON order in, a charge of about 200 bytes out, and a count of its runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

pub(super) const CHARGES: &str = "/charges";
pub(super) const RUNS: &str = "/runs";
/// Where runs are counted from: all of their numbers have as many digits.
pub(super) const FIRST_RUN: u64 = 1_000_000_000;
/// What the name of every order starts with.
pub(super) const ORDER: &str = "order-";

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
