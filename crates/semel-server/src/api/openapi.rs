//! The OpenAPI document: what it says of the whole, and what every endpoint may answer besides its decision.

use std::collections::BTreeMap;

use http::StatusCode;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, Modify, OpenApi};

use super::problem::{Code, Problem, Written};
use super::records::StateName;
use super::{claim, docs, events, operators, pipeline_actions, pipelines, records, settle, stats, store};

/// The document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "semel",
        description = "Work that happens once. A worker claims a key; exactly one is told to run; everyone else is told what happened.\n\nEvery decision is an answer with status 200. Errors are problem+json, and their `code` says what to do next. A request that was not answered may have taken: a claim with the same `permit_id`, and anything under the same permit, may be sent again."
    ),
    tags(
        (name = "work", description = "For workers: claim keys, and settle what was claimed. Needs the role `work`."),
        (name = "look", description = "For people and tools. One record whose key is known may be seen with every role; lists need `read` or `operate`; the bytes of outcomes are shown to `work` and `operate`."),
        (name = "operate", description = "For people on call: what they do to somebody else's record. Needs the role `operate`, and is written down."),
        (name = "server", description = "About this server.")
    ),
    security((), ("bearer" = [])),
    modifiers(&Security),
    components(schemas(Written, StateName)),
    paths(
        claim::claim,
        claim::claim_batch,
        claim::record_once,
        claim::record_once_batch,
        settle::resume,
        settle::complete,
        settle::complete_batch,
        settle::release,
        settle::release_batch,
        settle::hold,
        settle::renew,
        settle::renew_batch,
        settle::step,
        records::by_key,
        records::by_id,
        records::records,
        stats::stats,
        pipelines::offsets,
        pipelines::receipts,
        operators::release,
        operators::resolve,
        pipeline_actions::record_event,
        pipeline_actions::move_offset,
        store::store,
        store::scan,
        store::load,
        store::check,
        store::sweep,
        pipelines::requeue,
        events::events,
        docs::document,
        docs::page
    )
)]
struct Document;

/// What the routes are described as.
pub(super) fn description() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let mut http = Http::new(HttpAuthScheme::Bearer);
        http.description =
            Some("A token of the server's file. A server without tokens answers on its own machine only, to everybody.".to_owned());
        let components = document.components.take().unwrap_or_else(|| ComponentsBuilder::new().build());
        let components =
            ComponentsBuilder::from(components).security_scheme("bearer", SecurityScheme::Http(http));
        document.components = Some(components.build());
    }
}

/// Why a request with a body may be refused.
pub(super) struct Refused;

/// Why a request without one may be refused.
pub(super) struct Looked;

impl IntoResponses for Refused {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        refusals(|_| true)
    }
}

impl IntoResponses for Looked {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        refusals(|code| !matches!(code, Code::TooLarge | Code::UnsupportedMediaType))
    }
}

fn refusals(may_be: impl Fn(Code) -> bool) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<String, Vec<Code>> = BTreeMap::new();
    for code in Code::ALL.into_iter().filter(|code| may_be(*code)) {
        by_status.entry(code.status().as_str().to_owned()).or_default().push(code);
    }
    by_status.into_iter().map(|(status, codes)| (status, RefOr::T(refusal(&codes)))).collect()
}

fn refusal(codes: &[Code]) -> Response {
    let titles: Vec<_> = codes.iter().map(|code| format!("`{}`: {}.", code.as_str(), code.title())).collect();
    let mut content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem")));
    if let Some(code) = codes.first() {
        content = content.example(serde_json::to_value(Problem::new(*code, code.means())).ok());
    }
    let mut description = titles.join(" ");
    if codes.iter().any(|code| code.status() == StatusCode::SERVICE_UNAVAILABLE) {
        description.push_str(" `Retry-After` says when to ask again.");
    }
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", content.build())
        .build()
}
