//! `[rules]`, and what a `[[route]]` has of its own: the same names, on top of what was there.

use std::time::Duration;

use semel::{LEASE_MAX, RETENTION_MAX};
use semel_http::{Rules, WhileRunning};
use toml::de::DeTable;

use super::http_value::{header, json_path, method, status_not_kept};
use super::keywords::{LAPSE, ON_OUTAGE, ON_SERVER_ERROR, PRESENCE, REACH};
use semel_config::Table;
use semel_config::value::{Read, Value, bytes, count, kind, list, or_none, time, word, wrong};

/// The shortest span that means anything.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);
/// The longest body that may be held whole: what is longer has no business in a store of outcomes.
const BODY_BYTES_MAX: u64 = 1 << 30;
/// The word for no bound.
pub(super) const UNBOUNDED: &str = "unbounded";
/// The word for every header that may be kept.
pub(super) const ALL: &str = "all";

/// The rules, with what the table says instead.
pub(super) fn rules(table: &mut Table<'_>, mut rules: Rules) -> Rules {
    table.set("methods", &mut rules.methods, list(method));
    table.set("key", &mut rules.presence, word(PRESENCE));
    table.set("scope", &mut rules.reach, word(REACH));
    table.set("lease", &mut rules.lease, time(SHORTEST..=LEASE_MAX));
    table.set("retention", &mut rules.retention, time(SHORTEST..=RETENTION_MAX));
    table.set("lapse", &mut rules.lapse, word(LAPSE));
    table.set("attempts_max", &mut rules.attempts_max, or_none(UNBOUNDED, count(1..=u64::from(u32::MAX))));
    table.set("on_server_error", &mut rules.on_server_error, word(ON_SERVER_ERROR));
    table.set("statuses_not_kept", &mut rules.statuses_not_kept, list(status_not_kept));
    table.set("request_bytes_max", &mut rules.request_bytes_max, bytes(0..=BODY_BYTES_MAX));
    table.set("response_bytes_max", &mut rules.response_bytes_max, bytes(0..=BODY_BYTES_MAX));
    table.set("headers_kept", &mut rules.headers_kept, or_none(ALL, list(header)));
    table.set("fields_left_out", &mut rules.fields_left_out, list(json_path));
    table.set("while_running", &mut rules.while_running, while_running);
    table.set("on_outage", &mut rules.on_outage, word(ON_OUTAGE));
    rules
}

/// `"reject"` or `{ wait = "10s" }`.
fn while_running(value: &Value<'_>) -> Read<WhileRunning> {
    const WRITE: &str = "write \"reject\" or { wait = \"10s\" }";
    if let Some(word) = value.get_ref().as_str() {
        return if word == "reject" {
            Ok(WhileRunning::Reject)
        } else {
            wrong(value, format!("is \"{word}\"; {WRITE}"))
        };
    }
    let fields = value.get_ref().as_table();
    let mut fields = fields.into_iter().flat_map(DeTable::iter);
    match (fields.next(), fields.next()) {
        (Some((name, span)), None) if name.get_ref() == "wait" => {
            time(SHORTEST..=LEASE_MAX)(span).map(WhileRunning::Wait)
        }
        _ => wrong(value, format!("is {}; {WRITE}", kind(value))),
    }
}
