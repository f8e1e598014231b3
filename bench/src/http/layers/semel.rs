//! semel's layer, as a service would add it: everything by default but the bounds of the memory store.

use anyhow::Result;
use axum::Router;
use semel::Semel;
use semel_http::{IdempotencyLayer, Principal};

use crate::contestants::{file, roomy};

pub(super) fn on_memory(charges: Router) -> Router {
    layered(charges, Semel::new(roomy()))
}

pub(super) fn on_file(charges: Router, folder: &str) -> Result<Router> {
    Ok(layered(charges, Semel::new(file::open(folder.as_ref())?)))
}

fn layered(charges: Router, semel: Semel) -> Router {
    charges.layer(IdempotencyLayer::new(semel, Principal::header("authorization")))
}
