//! What pages are made of: states, moments, keys, empty states.

use std::time::Duration;

use maud::{Markup, html};
use semel::clock::Timestamp;
use semel::record::{Record, State};
use semel_http::HttpRecord;

use semel_ops::format::moment::{date, rfc3339, time};
use semel_ops::format::{scope, span};

/// Shorter spans are not counted: the numbers would only flicker.
const A_MOMENT: Duration = Duration::from_secs(1);

/// The shapes that go with the words for states, so that colour alone tells none of them.
const RUNNING: &str = "M3.2 1.8 10.2 6l-7 4.2z";
const LAPSED: &str = "M6 1.2 11.2 10.5H.8zM6 4.6v2.6M6 8.7v.4";
const DONE: &str = "M1.8 6.6 4.7 9.4l5.5-6.6";
const RELEASED: &str = "M9.9 4.4A4.2 4.2 0 1 0 10.2 6.6M10.3 1.6v3h-3";
const HELD: &str = "M3.9 2v8M8.1 2v8";

/// The state of a record, by word, shape and colour.
pub(super) fn state(record: &Record, now: Timestamp) -> Markup {
    let (class, word, shape) = match &record.state {
        State::Running(running) if running.lease_is_good(now) => ("state running", "running", RUNNING),
        State::Running(_) => ("state lapsed", "running, lapsed", LAPSED),
        State::Done(_) => ("state done", "done", DONE),
        State::Released(_) => ("state released", "released", RELEASED),
        State::Held(_) => ("state held", "held", HELD),
    };
    html! { span class=(class) data-test="key-state" { (sign(shape)) (word) } }
}

/// A word with the shape of a state.
pub(super) fn labelled(word: &str, label: &str) -> Markup {
    let shape = match word {
        "running" => RUNNING,
        "lapsed" => LAPSED,
        "done" => DONE,
        "released" => RELEASED,
        _ => HELD,
    };
    html! { span class={ "state " (word) } { (sign(shape)) (label) } }
}

fn sign(shape: &str) -> Markup {
    html! {
        svg.sign viewBox="0 0 12 12" width="12" height="12" aria-hidden="true" {
            path d=(shape) {}
        }
    }
}

/// A moment in UTC, and how far away it is. The script adds the local time.
pub(super) fn moment(at: Timestamp, now: Timestamp) -> Markup {
    html! {
        time.full datetime=(rfc3339(at)) { (utc(at)) }
        span.muted { " · " (relative(at, now)) }
    }
}

/// How far away a moment is, with the moment itself as a tooltip.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(rfc3339(at)) title=(utc(at)) { (relative(at, now)) } }
}

/// How long ago a moment was, without the word "ago": an age.
pub(super) fn age(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(rfc3339(at)) title=(utc(at)) { (lasting(now.since(at))) } }
}

/// `2026-11-18 07:12:03 UTC`.
fn utc(at: Timestamp) -> String {
    format!("{} {} UTC", date(at), time(at))
}

/// `3m 12s ago` or `in 3m 12s`.
pub(super) fn relative(at: Timestamp, now: Timestamp) -> String {
    let (away, is_to_come) = (now.since(at).max(at.since(now)), at > now);
    match (away < A_MOMENT, is_to_come) {
        (true, _) => "just now".to_owned(),
        (false, true) => format!("in {}", span::shown(away)),
        (false, false) => format!("{} ago", span::shown(away)),
    }
}

/// `3m 12s`, or `less than 1s`.
pub(super) fn lasting(span: Duration) -> String {
    if span < A_MOMENT { "less than 1s".to_owned() } else { span::shown(span) }
}

/// What people call a record: its label if the layer made it, else its name.
pub(super) fn heading(record: &Record) -> &str {
    match (HttpRecord::of(record), &record.label) {
        (Some(_), Some(label)) => label,
        _ => record.key.name(),
    }
}

/// A record as a link to its page: what it is called, and where it belongs.
pub(super) fn key_link(record: &Record) -> Markup {
    let key = &record.key;
    html! {
        a.key href={ "/keys/" (key.id()) } { bdi { (heading(record)) } }
        span.of {
            @if let Some(http) = HttpRecord::of(record) {
                "key " bdi { (key.name()) } " · " bdi { (http.caller()) }
            } @else {
                @if key.scope().next().is_some() { bdi.scope { (scope::shown(key.scope())) } " " }
                bdi { (key.operation()) }
                @if let Some(label) = &record.label { " · " bdi { (label) } }
            }
        }
    }
}

/// A sentence where nothing is to be shown.
pub(super) fn nothing(text: &str) -> Markup {
    html! { p.nothing { (text) } }
}

/// An empty page part that teaches: what would be here, and a command that makes it appear.
pub(super) fn empty(title: &str, text: &str, commands: &[&str]) -> Markup {
    html! {
        div.empty {
            p.title { (title) }
            p { (text) }
            @for command in commands { pre tabindex="0" aria-label="Command" { code { (command) } } }
        }
    }
}
