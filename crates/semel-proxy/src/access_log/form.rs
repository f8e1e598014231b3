//! How a line of the access log is written: for people, or as JSON.

use std::io::Write as _;
use std::time::Duration;

use semel::clock::Timestamp;
use serde_json::{Map, Value};

use super::entry::Entry;
use crate::settings::AccessLog;
use semel_ops::format::moment::rfc3339;

/// The longest path that is written whole.
const PATH_BYTES_MAX: usize = 1_024;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// As JSON.
    Json,
}

impl Form {
    pub(crate) fn of(access_log: AccessLog) -> Option<Self> {
        match access_log {
            AccessLog::Off => None,
            AccessLog::Text => Some(Self::Text),
            AccessLog::Json => Some(Self::Json),
        }
    }

    /// One line, its end included.
    pub(super) fn line(self, entry: &Entry, now: Timestamp) -> Vec<u8> {
        match self {
            Self::Text => text(entry, now),
            Self::Json => json(entry, now),
        }
    }
}

fn text(entry: &Entry, now: Timestamp) -> Vec<u8> {
    let mut line = Vec::with_capacity(192);
    let (method, path, peer) = (entry.method(), shown(entry.path()), entry.peer().ip());
    // Writing into memory does not fail.
    let _ = write!(line, "{} {peer} {method} {path} ", rfc3339(now));
    let _ = match entry.status() {
        Some(status) => write!(line, "{} {}", status.as_u16(), entry.decision()),
        None => write!(line, "- {}", entry.decision()),
    };
    if let Some(code) = entry.code() {
        let _ = write!(line, " {}", code.word());
    }
    if let Some(key) = entry.key() {
        let _ = write!(line, " key={}", key.short());
    }
    let _ = write!(line, " {}", millis(entry.took()));
    if let Some(took) = entry.upstream_took() {
        let _ = write!(line, " upstream {}", millis(took));
    }
    if !entry.is_whole() {
        line.extend_from_slice(b" broken-off");
    }
    line.push(b'\n');
    line
}

fn json(entry: &Entry, now: Timestamp) -> Vec<u8> {
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
    put("time", rfc3339(now).into());
    put("peer", entry.peer().ip().to_string().into());
    put("method", entry.method().as_str().into());
    put("path", shown(entry.path()).into());
    put("status", entry.status().map(|status| status.as_u16()).into());
    put("decision", entry.decision().into());
    if let Some(code) = entry.code() {
        put("code", code.word().into());
    }
    if let Some(key) = entry.key() {
        put("key", key.short().to_string().into());
    }
    put("ms", as_millis(entry.took()).into());
    if let Some(took) = entry.upstream_took() {
        put("upstream_ms", as_millis(took).into());
    }
    put("whole", entry.is_whole().into());
    let mut line = Value::Object(members).to_string().into_bytes();
    line.push(b'\n');
    line
}

fn shown(path: &str) -> &str {
    let end = (0..=PATH_BYTES_MAX.min(path.len())).rev().find(|end| path.is_char_boundary(*end));
    path.get(..end.unwrap_or(0)).unwrap_or_default()
}

fn millis(span: Duration) -> String {
    if span < Duration::from_millis(10) {
        format!("{:.1} ms", span.as_secs_f64() * 1e3)
    } else {
        format!("{} ms", span.as_millis())
    }
}

fn as_millis(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e5).round() / 1e2
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, Response};
    use semel_http::{Code, Decided};

    use super::*;
    use crate::access_log::Said;
    use crate::front::Observed;

    fn entry() -> Entry {
        let request = Request::post("/charges?card=4242").body(()).expect("is a request");
        let peer = "192.0.2.1:4711".parse().expect("is an address");
        let mut entry = Entry::new(Arc::new(Observed::new(None)), &request, peer, None);
        let mut response = Response::new(());
        *response.status_mut() = http::StatusCode::from_u16(409).expect("is a status");
        let key = semel::Key::new("http", "secret").expect("is a key").id();
        let decided = Decided { decision: "busy", code: Some(Code::InFlight), key: Some(key) };
        response.extensions_mut().insert(decided);
        let said = Said { code: None, upstream_took: Some(Duration::from_millis(12)) };
        response.extensions_mut().insert(said);
        entry.answered(&response);
        entry.ended();
        entry
    }

    #[test]
    fn a_line_says_what_was_decided_and_never_the_query_or_the_key() {
        let entry = entry();
        let digest = entry.key().expect("has one").short().to_string();
        let now = Timestamp::from_micros(1_000_000);
        let text = String::from_utf8(Form::Text.line(&entry, now)).expect("is text");
        let start = "1970-01-01T00:00:01.000000Z 192.0.2.1 POST /charges 409 busy in_flight key=";
        assert_eq!(text, format!("{start}{digest} 0.0 ms upstream 12 ms\n"));
        let json = String::from_utf8(Form::Json.line(&entry, now)).expect("is text");
        let read: Value = serde_json::from_str(&json).expect("is JSON");
        assert_eq!((&read["status"], &read["key"]), (&409.into(), &digest.clone().into()));
        assert_eq!((&read["decision"], &read["code"]), (&"busy".into(), &"in_flight".into()));
        for line in [text, json] {
            assert!(!line.contains("4242") && !line.contains("secret"), "{line}");
        }
    }
}
