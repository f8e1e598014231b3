//! Answers with the document, its page and the page's style. They are made once, when somebody first asks.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::Value;

use super::page::rendered;
use crate::api::openapi::{Looked, description};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::to_value(description()).unwrap_or_default());
static JSON: LazyLock<Bytes> = LazyLock::new(|| DOCUMENT.to_string().into());
static PAGE: LazyLock<Bytes> = LazyLock::new(|| rendered(&DOCUMENT).into_string().into());

/// See this document
#[utoipa::path(get, path = "/openapi.json", tag = "server", operation_id = "openapi", security(()),
    responses((status = 200, description = "An OpenAPI document.", body = serde_json::Value), Looked))]
pub(in crate::api) async fn document() -> Response {
    text("application/json", JSON.clone())
}

/// Read this document
#[utoipa::path(get, path = "/docs", tag = "server", operation_id = "docs", security(()),
    responses((status = 200, description = "A page.", body = String, content_type = "text/html"), Looked))]
pub(in crate::api) async fn page() -> Response {
    text("text/html; charset=utf-8", PAGE.clone())
}

/// How the page looks.
pub(in crate::api) async fn style() -> Response {
    text("text/css; charset=utf-8", Bytes::from_static(include_bytes!("style.css")))
}

/// Another release says something else: nobody keeps it for long.
fn text(media_type: &'static str, text: Bytes) -> Response {
    ([(CONTENT_TYPE, media_type), (CACHE_CONTROL, "max-age=60")], text).into_response()
}
