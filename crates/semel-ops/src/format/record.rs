//! A record in words.

use semel::clock::Timestamp;
use semel::record::{Record, State};
use semel_http::HttpRecord;

use super::span;

/// The parts of a scope, as `--scope` reads them.
pub fn scope(record: &Record) -> String {
    super::scope::shown(record.key.scope())
}

/// Scope, operation and name; of a key of the layer or the proxy its label, its name and its caller.
pub fn key(record: &Record) -> String {
    if let (Some(http), Some(label)) = (HttpRecord::of(record), &record.label) {
        return format!("{label} {} of {}", record.key.name(), http.caller());
    }
    let scope = scope(record);
    let (operation, name) = (record.key.operation(), record.key.name());
    if scope.is_empty() { format!("{operation} {name}") } else { format!("{scope} {operation} {name}") }
}

/// What is left of the lease or of the retention.
pub fn left(record: &Record, now: Timestamp) -> String {
    match &record.state {
        State::Running(running) => {
            let until = running.lease_until();
            if running.lease_is_good(now) {
                span::shown(until.since(now))
            } else {
                format!("lapsed {}", span::shown(now.since(until)))
            }
        }
        State::Done(_) | State::Released(_) => match record.live_until() {
            Some(until) => span::shown(until.since(now)),
            None => "for ever".to_owned(),
        },
        State::Held(_) => "until resolved".to_owned(),
    }
}

/// Who runs it, or why it is as it is.
pub fn who_or_why(record: &Record) -> &str {
    match &record.state {
        State::Running(running) => &running.grant.owner,
        State::Done(done) => done.outcome.kind().as_str(),
        State::Released(released) => &released.reason,
        State::Held(held) => held.reason.as_str(),
    }
}

/// Since when the record is in its state.
pub fn since(record: &Record) -> Timestamp {
    match &record.state {
        State::Running(running) => running.grant.granted_at,
        State::Done(done) => done.settled_at,
        State::Released(released) => released.settled_at,
        State::Held(held) => held.held_at,
    }
}

/// The beginning of the id, enough to name the record by.
pub fn short(record: &Record) -> String {
    record.key.id().short().to_string()
}
