//! What every endpoint must answer, by who asks and whose key it is about.

use test_http::Role;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// Without a token.
    Nobody,
    /// With a token that the server does not know.
    Stranger,
    /// With a token of the scope `acme`.
    Of(Role),
}

/// The columns of the table.
pub(super) const EVERYBODY: [Who; 5] =
    [Who::Nobody, Who::Stranger, Who::Of(Role::Work), Who::Of(Role::Read), Who::Of(Role::Operate)];

/// Whose key it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Own,
    Foreign,
}

/// An endpoint, and the status that each of [`EVERYBODY`] gets: about a key of their own scope, and of another.
pub(super) struct Row {
    pub(super) endpoint: &'static str,
    pub(super) own: [u16; 5],
    pub(super) foreign: [u16; 5],
}

const fn row(endpoint: &'static str, own: [u16; 5], foreign: [u16; 5]) -> Row {
    Row { endpoint, own, foreign }
}

/// Everything under the OpenAPI document.
#[rustfmt::skip]
pub(super) const API: &[Row] = &[
    //                                      none wrong work read operate   none wrong work read operate
    row("POST /v1/claim",                  [401, 401, 200, 403, 403],     [401, 401, 403, 403, 403]),
    row("POST /v1/complete",               [401, 401, 200, 403, 403],     [401, 401, 403, 403, 403]),
    row("POST /v1/release",                [401, 401, 200, 403, 403],     [401, 401, 403, 403, 403]),
    row("POST /v1/hold",                   [401, 401, 200, 403, 403],     [401, 401, 403, 403, 403]),
    row("POST /v1/renew",                  [401, 401, 200, 403, 403],     [401, 401, 403, 403, 403]),
    row("POST /v1/resume",                 [401, 401, 200, 403, 403],     [401, 401, 403, 403, 403]),
    row("POST /v1/step",                   [401, 401, 200, 403, 403],     [401, 401, 403, 403, 403]),
    row("POST /v1/record_once",            [401, 401, 200, 403, 403],     [401, 401, 403, 403, 403]),
    // The items of a batch are refused one by one; whether they were is looked at by what became of the record.
    row("POST /v1/claim/batch",            [401, 401, 200, 403, 403],     [401, 401, 200, 403, 403]),
    row("POST /v1/complete/batch",         [401, 401, 200, 403, 403],     [401, 401, 200, 403, 403]),
    row("POST /v1/release/batch",          [401, 401, 200, 403, 403],     [401, 401, 200, 403, 403]),
    row("POST /v1/renew/batch",            [401, 401, 200, 403, 403],     [401, 401, 200, 403, 403]),
    row("POST /v1/record_once/batch",      [401, 401, 200, 403, 403],     [401, 401, 200, 403, 403]),
    row("GET /v1/record",                  [401, 401, 200, 200, 200],     [401, 401, 403, 403, 403]),
    row("GET /v1/records/{id}",            [401, 401, 200, 200, 200],     [401, 401, 404, 404, 404]),
    row("GET /v1/records",                 [401, 401, 403, 200, 200],     [401, 401, 403, 403, 403]),
    row("POST /v1/records/{id}/release",   [401, 401, 403, 403, 200],     [401, 401, 403, 403, 404]),
    row("POST /v1/records/{id}/resolve",   [401, 401, 403, 403, 200],     [401, 401, 403, 403, 404]),
    row("POST /v1/records/{id}/requeue",   [401, 401, 403, 403, 200],     [401, 401, 403, 403, 404]),
    row("GET /v1/stats",                   [401, 401, 403, 200, 200],     [401, 401, 403, 200, 200]),
    row("GET /v1/offsets",                 [401, 401, 403, 200, 200],     [401, 401, 403, 200, 200]),
    row("GET /v1/receipts",                [401, 401, 403, 200, 200],     [401, 401, 403, 200, 200]),
    row("POST /v1/receipts/record",        [401, 401, 403, 403, 200],     [401, 401, 403, 403, 403]),
    row("POST /v1/offsets/move",           [401, 401, 403, 403, 200],     [401, 401, 403, 403, 403]),
    row("GET /v1/store",                   [401, 401, 403, 200, 200],     [401, 401, 403, 200, 200]),
    row("GET /v1/store/scan",              [401, 401, 403, 200, 200],     [401, 401, 403, 403, 403]),
    row("GET /v1/store/load",              [401, 401, 403, 200, 200],     [401, 401, 403, 200, 200]),
    row("GET /v1/store/check",             [401, 401, 403, 200, 200],     [401, 401, 403, 200, 200]),
    // A sweep is of all scopes.
    row("POST /v1/store/sweep",            [401, 401, 403, 403, 403],     [401, 401, 403, 403, 403]),
    row("GET /v1/events",                  [401, 401, 403, 200, 200],     [401, 401, 403, 200, 200]),
    row("GET /openapi.json",               [200, 200, 200, 200, 200],     [200, 200, 200, 200, 200]),
    row("GET /docs",                       [200, 200, 200, 200, 200],     [200, 200, 200, 200, 200]),
    row("GET /healthz",                    [200, 200, 200, 200, 200],     [200, 200, 200, 200, 200]),
    row("GET /readyz",                     [200, 200, 200, 200, 200],     [200, 200, 200, 200, 200]),
    row("GET /metrics",                    [401, 401, 403, 200, 200],     [401, 401, 403, 200, 200]),
];

/// Every page. Those who are not in are sent to the login page.
#[rustfmt::skip]
pub(super) const PAGES: &[Row] = &[
    row("GET /",                           [303, 303, 403, 200, 200],     [303, 303, 403, 200, 200]),
    row("GET /attention",                  [303, 303, 403, 200, 200],     [303, 303, 403, 200, 200]),
    row("GET /keys",                       [303, 303, 403, 200, 200],     [303, 303, 403, 200, 200]),
    row("GET /actions",                    [303, 303, 403, 403, 400],     [303, 303, 403, 403, 400]),
    row("GET /keys/{id}",                  [303, 303, 200, 200, 200],     [303, 303, 404, 404, 404]),
    row("GET /keys/{id}/outcome",          [303, 303, 200, 403, 200],     [303, 303, 404, 403, 404]),
    row("GET /keys/{id}/release",          [303, 303, 403, 403, 200],     [303, 303, 403, 403, 404]),
    row("GET /keys/{id}/resolve",          [303, 303, 403, 403, 200],     [303, 303, 403, 403, 404]),
    row("GET /keys/{id}/requeue",          [303, 303, 403, 403, 200],     [303, 303, 403, 403, 404]),
    row("GET /pipelines",                  [303, 303, 403, 200, 200],     [303, 303, 403, 200, 200]),
    row("GET /login",                      [200, 200, 200, 200, 200],     [200, 200, 200, 200, 200]),
    row("GET /assets/{name}",              [404, 404, 404, 404, 404],     [404, 404, 404, 404, 404]),
];

/// Every form, sent as a page of the server sends it.
#[rustfmt::skip]
pub(super) const FORMS: &[Row] = &[
    row("POST /keys/{id}/release",         [303, 303, 403, 403, 303],     [303, 303, 403, 403, 404]),
    row("POST /keys/{id}/resolve",         [303, 303, 403, 403, 303],     [303, 303, 403, 403, 404]),
    row("POST /keys/{id}/requeue",         [303, 303, 403, 403, 303],     [303, 303, 403, 403, 404]),
    // An id of another scope is not there: the page says that nothing was acted on.
    row("POST /actions",                   [303, 303, 403, 403, 200],     [303, 303, 403, 403, 200]),
    row("POST /login",                     [401, 401, 303, 303, 303],     [401, 401, 303, 303, 303]),
    row("POST /logout",                    [303, 303, 303, 303, 303],     [303, 303, 303, 303, 303]),
];
