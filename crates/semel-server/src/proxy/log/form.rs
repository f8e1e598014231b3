//! How a line of the access log is written: for people, or as JSON.

use std::io::Write as _;
use std::time::Duration;

use semel::clock::Timestamp;
use serde_json::{Map, Value};

use super::entry::Entry;
use crate::moment::rfc3339;
use crate::proxy::settings::AccessLog;

/// The longest path that is written whole.
const PATH_BYTES_MAX: usize = 1_024;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum Form {
    /// For people.
    Text,
    /// As JSON.
    Json,
}

impl Form {
    pub(in crate::proxy) fn of(access_log: AccessLog) -> Option<Self> {
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
