//! One event: the record of its last run, and of a dead letter what is kept of it.

use std::fmt::Write as _;

use anyhow::Result;
use semel_ops::format::response::BodyShown;
use semel_ops::record_json::dead_letter::LetterView;
use semel_ops::record_json::{Content, RecordView};
use semel_stream::{EventRecord, KeptLetter, KeptPayload, Requeue};
use serde::Serialize;

use super::Event;
use crate::keys::{self, Shown};
use crate::terminal::{bytes, out, style, text};

/// One object: the record, and what only events have.
#[derive(Serialize)]
struct EventJson<'a> {
    #[serde(flatten)]
    record: RecordView<'a>,
    has_key: bool,
    requeue: u32,
    is_waiting: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter: Option<LetterView<'a>>,
}

pub(super) fn show(event: &Event, pipeline: &str, shown: Shown) -> Result<()> {
    let Event { event, found } = event;
    let letter = event.letter();
    if shown.json {
        let content = if shown.outcome { Content::Base64 } else { Content::Hidden };
        return out::json(&EventJson {
            record: RecordView::of(&found.record, found.now, content),
            has_key: event.has_key,
            requeue: event.requeue,
            is_waiting: event.is_waiting,
            dead_letter: letter.as_ref().map(|letter| LetterView::of(letter, Content::Base64)),
        });
    }
    // The bytes of a dead letter are its payload, which is shown below.
    keys::show(found, Shown { outcome: shown.outcome && letter.is_none(), ..shown })?;
    if let Some(letter) = &letter {
        out::print(&letter_text(letter))?;
    }
    match standing(event, pipeline) {
        Some(said) => out::line(&format!("\n{said}")),
        None => Ok(()),
    }
}

/// A dead letter: why, where it came from, and what it says.
fn letter_text(letter: &KeptLetter) -> String {
    let place = letter.stream.as_deref().map(|stream| match letter.position {
        Some(position) => format!("{stream} at {position}"),
        None => stream.to_owned(),
    });
    let headers =
        letter.headers.iter().map(|header| ("header", format!("{}: {}", header.name, header.value)));
    let lines = [
        ("error", letter.error.clone().unwrap_or_else(|| "not recorded".to_owned())),
        ("attempts", letter.attempts.map(|attempts| attempts.to_string()).unwrap_or_default()),
        ("from", place.unwrap_or_default()),
        ("event id", letter.id.as_deref().unwrap_or_default().to_owned()),
        ("key", letter.key.as_deref().unwrap_or("none").to_owned()),
    ];
    let mut text = "\nDead letter\n".to_owned();
    for (name, value) in lines.into_iter().chain(headers).filter(|(_, value)| !value.is_empty()) {
        let name = style::quiet().apply_to(format!("{name:<13}")).to_string();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name} {}", text::shown(&value));
    }
    text.push_str(&payload_text(&letter.payload));
    text
}

fn payload_text(payload: &KeptPayload) -> String {
    match payload {
        KeptPayload::Whole(payload) => {
            let (shown, is_cut) = BodyShown::untyped(payload);
            let size = bytes::size(payload.len() as u64);
            let cut = if is_cut { ", of which the beginning is shown (all of it: --json)" } else { "" };
            let shown = if payload.is_empty() { String::new() } else { shown.text(payload.len()) };
            format!("\nPayload, {size}{cut}:\n{shown}")
        }
        KeptPayload::TooLarge { bytes: length, sha256 } => format!(
            "\nThe payload is not kept: with its headers it was larger than --dead-letter-bytes-max. It had {}; SHA-256 {sha256}\n",
            bytes::size(*length)
        ),
        KeptPayload::Unknown => {
            "\nThe payload is not kept: the version of semel that put it aside kept none.\n".to_owned()
        }
    }
}

/// What was requeued, and what may be done.
fn standing(event: &EventRecord, pipeline: &str) -> Option<String> {
    let (name, pipeline) = (text::shown(&event.event), text::shown(pipeline));
    let before = match event.requeue {
        0 => String::new(),
        number => format!("This is its requeue {number}; the runs before it ended as dead letters. "),
    };
    let next = match event.requeue_answer() {
        Requeue::AlreadyWaiting { number } => {
            format!("It was requeued, and waits for a consumer of {pipeline} (requeue {number}).")
        }
        Requeue::Requeued { .. } => {
            format!(
                "Mend the cause, then have it processed again: semel receipts requeue {pipeline} '{name}'"
            )
        }
        Requeue::NotKept => "It cannot be requeued; send it anew, under a key of its own.".to_owned(),
        Requeue::NotDead(_) | Requeue::Changed | Requeue::Full | Requeue::Unknown => String::new(),
    };
    Some(before + &next).filter(|said| !said.is_empty())
}
