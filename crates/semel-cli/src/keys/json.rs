//! A record for scripts. Never a permit id: whoever knows one may settle the record.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel::clock::Timestamp;
use semel::record::{Record, State};
use semel::{Lapse, Outcome};
use serde_json::{Map, Value, json};

use super::show::Bytes;
use super::words;
use crate::terminal::moment::rfc3339;

/// One JSON object; its members only ever grow in number.
pub(super) fn record(record: &Record, now: Timestamp, bytes: Bytes) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| {
        object.insert(name.to_owned(), value);
    };
    put("id", json!(record.key.id().to_string()));
    put("scope", json!(record.key.scope().collect::<Vec<_>>()));
    put("operation", json!(record.key.operation()));
    put("name", json!(record.key.name()));
    put("state", json!(record.state.word().as_str()));
    put("attempt", json!(record.attempt));
    put("pardoned", json!(record.pardoned));
    put("lapse", json!(lapse(record.lapse)));
    put("retention_ms", millis(record.retention));
    put("first_seen_at", json!(rfc3339(record.first_seen_at)));
    put("changed_at", json!(rfc3339(record.changed_at)));
    put("since", json!(rfc3339(words::since(record))));
    put("age_ms", millis(now.since(record.first_seen_at)));
    put("remembered_until", json!(record.live_until().map(rfc3339)));
    put("first_event", json!(record.first_event));
    put("has_fingerprint", json!(record.fingerprint.is_some()));
    put("mismatches", json!(record.mismatches.count));
    put("duplicates", json!(record.duplicates.count));
    put("last_duplicate_at", json!(record.duplicates.last_seen_at.map(rfc3339)));
    put("version", json!(record.version.get()));
    put(
        "steps",
        record.steps().iter().map(|step| json!({ "name": step.name, "bytes": step.value.len() })).collect(),
    );
    for (name, value) in of_state(record, now, bytes) {
        put(name, value);
    }
    Value::Object(object)
}

/// What only a record in this state has.
fn of_state(record: &Record, now: Timestamp, bytes: Bytes) -> Vec<(&'static str, Value)> {
    match &record.state {
        State::Running(running) => vec![
            ("owner", json!(&*running.owner)),
            ("fence", json!(running.fence.get())),
            ("lease_ms", millis(running.lease)),
            ("leased_at", json!(rfc3339(running.leased_at))),
            ("lease_until", json!(rfc3339(running.lease_until()))),
            ("lapsed", json!(!running.lease_is_good(now))),
        ],
        State::Done(done) => {
            vec![("fence", json!(done.fence.get())), ("outcome", outcome(&done.outcome, bytes))]
        }
        State::Released(released) => vec![("reason", json!(released.reason))],
        State::Held(held) => vec![("reason", json!(held.reason))],
    }
}

fn outcome(outcome: &Outcome, bytes: Bytes) -> Value {
    // Details are JSON text; if they are not, the text itself is better than nothing.
    let details =
        outcome.details_json().map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
    let mut object = json!({
        "kind": outcome.kind().as_str(),
        "bytes": outcome.bytes().len(),
        "primary": outcome.primary(),
        "secondary": outcome.secondary(),
        "details": details,
    });
    if let (Bytes::Shown, Some(object)) = (bytes, object.as_object_mut()) {
        object.insert("base64".to_owned(), json!(STANDARD.encode(outcome.bytes())));
    }
    object
}

/// The word for a lapse policy, wherever it is shown.
pub(super) fn lapse(lapse: Lapse) -> &'static str {
    match lapse {
        Lapse::Rerun => "rerun",
        Lapse::Hold => "hold",
    }
}

fn millis(span: std::time::Duration) -> Value {
    json!(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}
