//! The life of a record, as a timeline.

use maud::{Markup, html};
use semel::Lapse;
use semel::clock::Timestamp;
use semel::record::{Record, Running, State};
use semel_http::HttpRecord;

use crate::dashboard::parts::moment;
use semel_ops::format::number::counted;
use semel_ops::format::span;

/// Something that happened, or will.
struct Event {
    at: Timestamp,
    /// What it is about, for its colour.
    class: &'static str,
    what: Markup,
}

/// The timeline: what happened, and what will happen without an action.
pub(super) fn timeline(record: &Record, now: Timestamp) -> Markup {
    let mut events = events(record, now);
    events.sort_by_key(|event| event.at);
    html! {
        ol.timeline {
            @for event in events {
                li class={ (event.class) @if event.at > now { " to-come" } } {
                    p.when { (moment(event.at, now)) }
                    div { (event.what) }
                }
            }
            @if record.live_until().is_none() {
                li class="ends to-come" { p.when { "for ever" } div { (kept_for_ever(record)) } }
            }
        }
    }
}

fn events(record: &Record, now: Timestamp) -> Vec<Event> {
    let event = |at, class, what| Event { at, class, what };
    let first = html! {
        strong { "First seen" }
        @if let Some(first) = record.first_event.as_ref().filter(|_| HttpRecord::of(record).is_none()) {
            " with the event " bdi { (first) }
        }
    };
    let mut events = vec![event(record.first_seen_at, "seen", first)];
    if let Some(last) = record.duplicates.last_seen_at {
        let many = counted(record.duplicates.count, "claim");
        events.push(event(
            last,
            "again",
            html! { strong { "Claimed again" } ": " (many) " in all did not run; this was the last" },
        ));
    }
    match &record.state {
        State::Running(running) => {
            let granted = html! {
                strong { "Attempt " (record.attempt) " was granted" } " to " bdi { (running.grant.owner) } ", with the fence " (running.grant.fence.get())
            };
            events.push(event(running.grant.granted_at, "running", granted));
            if running.leased_at > running.grant.granted_at {
                events.push(event(
                    running.leased_at,
                    "running",
                    html! { strong { "The lease was renewed" } ", for " (span::shown(running.lease)) },
                ));
            }
            events.push(event(running.lease_until(), "lapsed", lapse(record, running, now)));
        }
        State::Done(done) => {
            let what = html! { strong { "Completed" } " by attempt " (record.attempt) ", under the fence " (done.grant.fence.get()) };
            events.push(event(done.settled_at, "done", what));
        }
        State::Released(released) => {
            events.push(event(
                released.settled_at,
                "released",
                html! { strong { "Released" } ": " bdi { (released.reason) } },
            ));
        }
        State::Held(held) => {
            events.push(event(
                held.held_at,
                "held",
                html! { strong { "Held" } ": " bdi { (held.reason.as_str()) } },
            ));
        }
    }
    if let Some(until) = record.live_until() {
        events.push(event(
            until,
            "ends",
            html! { strong { "Forgotten" } ": a claim after that starts over" },
        ));
    }
    events
}

fn lapse(record: &Record, running: &Running, now: Timestamp) -> Markup {
    html! {
        @if running.lease_is_good(now) { strong { "The lease lapses" } ", unless it is renewed: " } @else { strong { "The lease lapsed" } ": " }
        @match record.lapse {
            Lapse::Rerun => { "the next claim runs it again" }
            Lapse::Hold => { "it is held until an operator decides" }
        }
    }
}

fn kept_for_ever(record: &Record) -> Markup {
    html! {
        @match &record.state {
            State::Held(_) => { strong { "Held until an operator decides" } }
            State::Running(_) => { strong { "Kept until it is settled" } }
            State::Done(_) | State::Released(_) => { strong { "Never forgotten" } }
        }
    }
}
