//! What is in an outcome, for those who may see it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use semel::Outcome;
use semel::record::Record;
use semel_http::{HttpRecord, StoredResponse};
use semel_stream::DEAD_LETTER_KIND;

use super::detail::Found;
use super::response::{content, summary, whole};
use crate::access::Need;
use crate::dashboard::answer::{Refused, attachment};
use crate::dashboard::parts::nothing;
use crate::dashboard::session::Visitor;
use crate::state::AppState;
use semel_ops::format::bytes;

/// The outcome of a record.
pub(super) fn outcome(record: &Record, outcome: &Outcome, visitor: &Visitor) -> Markup {
    let size = bytes::size(outcome.bytes().len() as u64);
    // A response that cannot be read is shown as the bytes that it is.
    let response = HttpRecord::of(record).and_then(|http| http.response()).and_then(Result::ok);
    let is_letter = outcome.kind().as_str() == DEAD_LETTER_KIND;
    html! {
        section.card aria-labelledby="outcome-title" {
            h2 #outcome-title { @if response.is_some() { "Response" } @else if is_letter { "Payload" } @else { "Outcome" } }
            dl.facts {
                @if let Some(response) = &response { (summary(response)) }
                div { dt { "Kind" } dd { bdi { (outcome.kind().as_str()) } } }
                div { dt { "Size" } dd { (size) } }
                @for reference in outcome.references() {
                    div { dt { "Reference" } dd { bdi { (reference.kind) } " " bdi { (reference.id) } } }
                }
                // Those of a dead letter have a section of their own, which leaves out what not every role may see.
                @if let Some(details) = outcome.details_json().filter(|_| !is_letter) { div.wide { dt { "Details" } dd { (content(details.as_bytes())) } } }
            }
            @if visitor.caller.may(Need::Content) {
                @match response.as_ref() {
                    Some(StoredResponse::Whole(reply)) => { (whole(reply)) }
                    Some(StoredResponse::NotKept(Some(_))) => {}
                    Some(StoredResponse::NotKept(None)) | None => { (content(outcome.bytes())) }
                }
                @if !outcome.bytes().is_empty() {
                    p { a.button href={ "/keys/" (record.key.id()) "/outcome" } download { "Download all " (size) } }
                }
            } @else {
                (nothing("Its content is shown to the role operate."))
            }
        }
    }
}

/// All of an outcome, as a file.
pub(in crate::dashboard) async fn download(
    State(served): State<Arc<AppState>>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    visitor.need(Need::Content)?;
    let Found { record, .. } = Found::by_id(&served, &visitor, &id).await?;
    let outcome = record.outcome().ok_or_else(|| Refused::no_record(&visitor))?;
    Ok(attachment(&format!("outcome-{}.bin", record.key.id().short()), outcome.bytes().to_vec()))
}
