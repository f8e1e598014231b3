//! What is in an outcome: for those who may know, and never more of it than a page can bear.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use semel::Outcome;
use semel::record::Record;
use serde::de::IgnoredAny;

use super::detail::Found;
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
                @for reference in outcome.references() {
                    div { dt { "Reference" } dd { bdi { (reference.kind) } " " bdi { (reference.id) } } }
                }
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

/// JSON on one line, in lines; anything else as it is. Members stay in their order, and numbers as they were written.
fn pretty(text: &str) -> String {
    let is_structure = text.trim_start().starts_with(['{', '[']);
    let is_json = || serde_json::from_str::<IgnoredAny>(text).is_ok();
    if !is_structure || text.trim().contains('\n') || !is_json() {
        return text.to_owned();
    }
    let (mut lines, mut depth, mut before) = (String::with_capacity(text.len()), 0_usize, ' ');
    let (mut is_quoted, mut is_escaped) = (false, false);
    for c in text.trim().chars() {
        if is_quoted {
            (is_quoted, is_escaped) = (is_escaped || c != '"', !is_escaped && c == '\\');
            lines.push(c);
            before = c;
            continue;
        }
        match c {
            ' ' | '\t' | '\r' => continue,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !matches!(before, '{' | '[') {
                    new_line(&mut lines, depth);
                }
            }
            _ if matches!(before, '{' | '[' | ',') => new_line(&mut lines, depth),
            _ => {}
        }
        lines.push(c);
        match c {
            '"' => is_quoted = true,
            '{' | '[' => depth = depth.saturating_add(1),
            ':' => lines.push(' '),
            _ => {}
        }
        // The end of a string is no bracket, whatever it holds.
        before = c;
    }
    lines
}

fn new_line(lines: &mut String, depth: usize) {
    lines.push('\n');
    // Whatever is deeper than a page is wide stays at its edge.
    lines.extend(std::iter::repeat_n("  ", depth.min(32)));
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

    #[test]
    fn json_gets_lines_and_keeps_its_order_and_its_numbers() {
        let text = r#"{"z": 1.10, "a": [1,{}, []], "s": "{\"a\": [1, 2]}\\", "e": "[" ,"b":true}"#;
        let lines = concat!(
            "{\n  \"z\": 1.10,\n  \"a\": [\n    1,\n    {},\n    []\n  ],\n",
            "  \"s\": \"{\\\"a\\\": [1, 2]}\\\\\",\n  \"e\": \"[\",\n  \"b\": true\n}"
        );
        assert_eq!(pretty(text), lines);
    }

    #[test]
    fn what_is_no_json_or_has_lines_already_stays_as_it_is() {
        for text in ["", "paid", "{not json", "[1,\n2]", "12", "\"text\"", "{'a': 1}"] {
            assert_eq!(pretty(text), text);
        }
    }

    #[test]
    fn depth_costs_no_more_than_its_length() {
        let text = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(pretty(&text).len() < text.len() * 70);
    }
}
