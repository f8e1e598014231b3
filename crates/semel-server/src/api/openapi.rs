//! The OpenAPI document: what every endpoint may answer besides its decision.

use std::collections::BTreeMap;

use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::{Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, OpenApi};

use super::problem::{Code, Problem, Written};

/// The document, but for its paths.
#[derive(OpenApi)]
#[openapi(
    info(title = "semel", description = "Work that happens once: claim a key, run, complete. Every decision is a 200."),
    components(schemas(Written))
)]
pub(super) struct Document;

/// Why any request may be refused.
pub(super) struct Refused;

impl IntoResponses for Refused {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut by_status: BTreeMap<String, Vec<Code>> = BTreeMap::new();
        for code in Code::ALL {
            by_status.entry(code.status().as_u16().to_string()).or_default().push(code);
        }
        by_status.into_iter().map(|(status, codes)| (status, RefOr::T(refusal(&codes)))).collect()
    }
}

fn refusal(codes: &[Code]) -> Response {
    let titles: Vec<_> = codes.iter().map(|code| format!("`{}`: {}.", code.as_str(), code.title())).collect();
    let mut content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem")));
    if let Some(code) = codes.first() {
        let example = Problem::new(*code, "What went wrong this time, and what to do next.");
        content = content.example(serde_json::to_value(example).ok());
    }
    ResponseBuilder::new()
        .description(titles.join(" "))
        .content("application/problem+json", content.build())
        .build()
}
