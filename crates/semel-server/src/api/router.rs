//! Which path is answered by what.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::Document;
use super::{claim, docs, events, list, operators, pipelines, records, resume, settle, stats};
use crate::served::Served;

/// Everything under `/v1`, the OpenAPI document, and its page.
pub fn router() -> Router<Arc<Served>> {
    documented().split_for_parts().0.route("/docs.css", get(docs::style))
}

/// What the routes are described as.
pub(super) fn description() -> utoipa::openapi::OpenApi {
    documented().split_for_parts().1
}

/// The routes and their document, which are made together and cannot differ.
fn documented() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(claim::claim))
        .routes(routes!(claim::claim_batch))
        .routes(routes!(claim::record_once))
        .routes(routes!(claim::record_once_batch))
        .routes(routes!(resume::resume))
        .routes(routes!(settle::complete))
        .routes(routes!(settle::complete_batch))
        .routes(routes!(settle::release))
        .routes(routes!(settle::release_batch))
        .routes(routes!(settle::hold))
        .routes(routes!(settle::renew))
        .routes(routes!(settle::renew_batch))
        .routes(routes!(settle::step))
        .routes(routes!(records::by_key))
        .routes(routes!(records::by_id))
        .routes(routes!(list::records))
        .routes(routes!(stats::stats))
        .routes(routes!(pipelines::offsets))
        .routes(routes!(pipelines::receipts))
        .routes(routes!(operators::release))
        .routes(routes!(operators::resolve))
        .routes(routes!(events::events))
        .routes(routes!(docs::document))
        .routes(routes!(docs::page))
}
