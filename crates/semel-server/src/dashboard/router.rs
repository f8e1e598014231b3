//! Which path is answered by what.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use super::{attention, frame, keys, login, overview, pipelines};
use crate::state::AppState;

/// Every page, and what pages are made of.
pub fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/", get(overview::show))
        .route("/attention", get(attention::show))
        .route("/keys", get(keys::search))
        .route("/actions", get(keys::confirm_many).post(keys::act_on_many))
        .route("/keys/{id}", get(keys::one))
        .route("/keys/{id}/outcome", get(keys::download))
        .route("/keys/{id}/release", get(keys::confirm_release).post(keys::release))
        .route("/keys/{id}/resolve", get(keys::confirm_resolve).post(keys::resolve))
        .route("/keys/{id}/requeue", get(keys::confirm_requeue).post(keys::requeue))
        .route("/pipelines", get(pipelines::show))
        .route("/login", get(login::show).post(login::enter))
        .route("/logout", post(login::leave))
        .route("/assets/{name}", get(frame::asset))
}
