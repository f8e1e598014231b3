//! What is in an outcome: for those who may know, and never more of it than a page can bear.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use semel::Outcome;
use semel::record::Record;

use super::lookup::Found;
use super::pretty::pretty;
use crate::access::Need;
use crate::dashboard::answer::{Refused, attachment};
use crate::dashboard::parts::nothing;
use crate::dashboard::session::Visitor;
use crate::state::AppState;
use semel_ops::format::bytes;

/// How much of an outcome a page shows.
const SHOWN_MAX: usize = 64 << 10;
/// How much of one that is no text: each byte of it takes several characters.
const DUMPED_MAX: usize = 8 << 10;

/// The outcome of a record.
pub(super) fn outcome(record: &Record, outcome: &Outcome, visitor: &Visitor) -> Markup {
    let size = bytes::size(outcome.bytes().len() as u64);
    html! {
        section.card aria-labelledby="outcome-title" {
            h2 #outcome-title { "Outcome" }
            dl.facts {
                div { dt { "Kind" } dd { bdi { (outcome.kind().as_str()) } } }
                div { dt { "Size" } dd { (size) } }
                @if let Some(primary) = outcome.primary() { div { dt { "Reference" } dd { bdi { (primary) } } } }
                @if let Some(secondary) = outcome.secondary() { div { dt { "Second reference" } dd { bdi { (secondary) } } } }
                @if let Some(details) = outcome.details_json() { div.wide { dt { "Details" } dd { pre { (pretty(details)) } } } }
            }
            @if visitor.caller.may(Need::Content) {
                (content(outcome.bytes()))
                @if !outcome.bytes().is_empty() {
                    p { a.button href={ "/keys/" (record.key.id()) "/outcome" } download { "Download all " (size) } }
                }
            } @else {
                (nothing("What is in it is shown to the role operate."))
            }
        }
    }
}

fn content(bytes: &[u8]) -> Markup {
    if bytes.is_empty() {
        return nothing("It is empty.");
    }
    let dumped = || {
        let start = bytes.get(..DUMPED_MAX).unwrap_or(bytes);
        (bytes::dump(start), start.len())
    };
    let (text, shown) = text(bytes).map_or_else(dumped, |(text, length)| (pretty(text), length));
    html! {
        div.content tabindex="0" role="region" aria-label="What is in the outcome" { pre { (text) } }
        @if shown < bytes.len() { p.muted { "The first " (bytes::size(shown as u64)) " of " (bytes::size(bytes.len() as u64)) "." } }
    }
}

/// As much text as is shown, and how many bytes that is; `None` if it is no text.
fn text(bytes: &[u8]) -> Option<(&str, usize)> {
    let start = bytes.get(..SHOWN_MAX).unwrap_or(bytes);
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        // A character that was cut in two does not make it something else.
        Err(error) if start.len() < bytes.len() && error.error_len().is_none() => {
            std::str::from_utf8(start.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let is_text = text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'));
    is_text.then_some((text, text.len()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_is_cut_in_two_is_left_out() {
        let mut bytes = vec![b'a'; SHOWN_MAX - 1];
        bytes.extend("é and more".as_bytes());
        let (text, length) = text(&bytes).expect("is text");
        assert_eq!((text.len(), length), (SHOWN_MAX - 1, SHOWN_MAX - 1));
    }

    #[test]
    fn what_is_no_text_is_not_shown_as_text() {
        assert_eq!(text(b"a\0b"), None);
        assert_eq!(text(b"\xff\xfe"), None);
        assert_eq!(text("gr\u{fc}n\n".as_bytes()), Some(("gr\u{fc}n\n", 6)));
    }
}
