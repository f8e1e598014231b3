//! Which path is answered by what.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, get, post};

#[cfg(feature = "openapi")]
use super::docs;
use super::{claim, events, operators, pipeline_actions, pipelines, records, settle, stats, store};
use crate::state::AppState;

/// Everything under `/v1`, the OpenAPI document, and its page.
pub fn router() -> Router<Arc<AppState>> {
    let router =
        routes().into_iter().fold(Router::new(), |router, (path, answer)| router.route(path, answer));
    #[cfg(feature = "openapi")]
    let router = router.route("/docs.css", get(docs::style));
    #[cfg(not(feature = "openapi"))]
    let router = router.route("/openapi.json", get(without_openapi)).route("/docs", get(without_openapi));
    router
}

/// Every path that the OpenAPI document describes.
fn routes() -> Vec<(&'static str, MethodRouter<Arc<AppState>>)> {
    vec![
        ("/v1/claim", post(claim::claim)),
        ("/v1/claim/batch", post(claim::claim_batch)),
        ("/v1/record_once", post(claim::record_once)),
        ("/v1/record_once/batch", post(claim::record_once_batch)),
        ("/v1/resume", post(settle::resume)),
        ("/v1/complete", post(settle::complete)),
        ("/v1/complete/batch", post(settle::complete_batch)),
        ("/v1/release", post(settle::release)),
        ("/v1/release/batch", post(settle::release_batch)),
        ("/v1/hold", post(settle::hold)),
        ("/v1/renew", post(settle::renew)),
        ("/v1/renew/batch", post(settle::renew_batch)),
        ("/v1/step", post(settle::step)),
        ("/v1/record", get(records::by_key)),
        ("/v1/records/{id}", get(records::by_id)),
        ("/v1/records", get(records::records)),
        ("/v1/stats", get(stats::stats)),
        ("/v1/offsets", get(pipelines::offsets)),
        ("/v1/receipts", get(pipelines::receipts)),
        ("/v1/records/{id}/release", post(operators::release)),
        ("/v1/records/{id}/resolve", post(operators::resolve)),
        ("/v1/receipts/record", post(pipeline_actions::record_event)),
        ("/v1/offsets/move", post(pipeline_actions::move_offset)),
        ("/v1/store", get(store::store)),
        ("/v1/store/scan", get(store::scan)),
        ("/v1/store/load", get(store::load)),
        ("/v1/store/check", get(store::check)),
        ("/v1/store/sweep", post(store::sweep)),
        ("/v1/records/{id}/requeue", post(pipelines::requeue)),
        ("/v1/events", get(events::events)),
        #[cfg(feature = "openapi")]
        ("/openapi.json", get(docs::document)),
        #[cfg(feature = "openapi")]
        ("/docs", get(docs::page)),
    ]
}

#[cfg(not(feature = "openapi"))]
async fn without_openapi() -> super::Problem {
    super::Problem::not_found(semel_ops::missing_feature_message("OpenAPI document", "openapi"))
}

#[cfg(all(test, feature = "openapi"))]
mod tests {
    use std::collections::BTreeSet;

    use super::super::openapi::description;
    use super::*;

    #[test]
    fn the_document_describes_every_route_and_no_other() {
        let routes: BTreeSet<_> = routes().into_iter().map(|(path, _)| path.to_owned()).collect();
        let described: BTreeSet<_> = description().paths.paths.into_keys().collect();
        assert_eq!(routes, described);
    }
}

#[cfg(all(test, not(feature = "openapi")))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_features_the_document_is_refused_with_the_feature_to_add() {
        let problem = without_openapi().await;
        assert_eq!(problem.detail(), "this build has no OpenAPI document; build with `--features openapi`");
    }
}
