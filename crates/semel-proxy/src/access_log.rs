//! The access log, and what requests came to as metrics: one line a request, at its end. Never a key, a query, a body or a
//! token.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, Uri};
use metrics::{Counter, Histogram, counter, histogram};
use semel::clock::Timestamp;
use semel::{Error, ErrorKind, RecordId, Result};
use semel_http::{Code, Decided};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::front::Observed;
use crate::settings::AccessLog;
use semel_listen::OneInFlight;
use semel_ops::format::moment::rfc3339;

/// The longest path that is written whole.
const PATH_BYTES_MAX: usize = 1_024;
/// How many bytes may wait to be written. What comes on top is dropped, and counted.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// How long lines are gathered before they are written together.
const GATHER: Duration = Duration::from_millis(20);
/// How long to wait for the last lines to be written.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// What was decided about a request, in the order of the counters.
const DECISIONS: [&str; 9] =
    ["pass", "run", "replay", "busy", "mismatch", "held", "unprotected", "refused", "gone"];
/// By status; the first is for requests that got none.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// What the proxy itself knows of an answer: an extension of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    /// Why, if it is the proxy that answers.
    pub(crate) code: Option<Code>,
    /// How long the upstream took for the head of its answer.
    pub(crate) upstream_took: Option<Duration>,
}

/// What is known of a request.
pub(crate) struct Entry {
    observed: Arc<Observed>,
    method: Method,
    uri: Uri,
    peer: SocketAddr,
    started_at: Instant,
    took: Duration,
    /// `None` if the client went before there was an answer.
    status: Option<StatusCode>,
    decided: Option<Decided>,
    said: Said,
    whole: bool,
    /// Dropped with it: in flight means until the last byte was handed over.
    _in_flight: Option<OneInFlight>,
}

impl Entry {
    pub(crate) fn new<B>(
        observed: Arc<Observed>,
        request: &Request<B>,
        peer: SocketAddr,
        in_flight: Option<OneInFlight>,
    ) -> Self {
        Self {
            observed,
            method: request.method().clone(),
            uri: request.uri().clone(),
            peer,
            started_at: Instant::now(),
            took: Duration::ZERO,
            status: None,
            decided: None,
            said: Said::default(),
            whole: true,
            _in_flight: in_flight,
        }
    }

    /// The head of the answer is known.
    pub(crate) fn answered<B>(&mut self, response: &Response<B>) {
        self.status = Some(response.status());
        let extensions = response.extensions();
        self.decided = extensions.get().copied();
        self.said = extensions.get().copied().unwrap_or_default();
        // Until its last byte was handed over.
        self.whole = false;
    }

    /// All of the answer was handed over.
    pub(crate) fn ended(&mut self) {
        self.whole = true;
    }

    /// Without its query, which may hold anything.
    fn path(&self) -> &str {
        self.uri.path()
    }

    fn decision(&self) -> &'static str {
        match (&self.decided, self.status) {
            (Some(decided), _) => decided.decision.as_str(),
            (None, Some(_)) if self.said.code.is_some() => "refused",
            (None, Some(_)) => "pass",
            (None, None) => "gone",
        }
    }

    fn code(&self) -> Option<Code> {
        self.said.code.or(self.decided.and_then(|decided| decided.code))
    }

    fn key(&self) -> Option<RecordId> {
        self.decided.and_then(|decided| decided.key)
    }

    fn is_whole(&self) -> bool {
        self.whole && self.status.is_some()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.took = self.started_at.elapsed();
        let observed = Arc::clone(&self.observed);
        observed.tally.count(self);
        if let Some(log) = &observed.log {
            log.add(&log.form.line(self, Observed::now()));
        }
    }
}

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
    fn line(self, entry: &Entry, now: Timestamp) -> Vec<u8> {
        match self {
            Self::Text => text(entry, now),
            Self::Json => json(entry, now),
        }
    }
}

fn text(entry: &Entry, now: Timestamp) -> Vec<u8> {
    let mut line = Vec::with_capacity(192);
    let (method, path, peer) = (&entry.method, shown(entry.path()), entry.peer.ip());
    // Writing into memory does not fail.
    let _ = write!(line, "{} {peer} {method} {path} ", rfc3339(now));
    let _ = match entry.status {
        Some(status) => write!(line, "{} {}", status.as_u16(), entry.decision()),
        None => write!(line, "- {}", entry.decision()),
    };
    if let Some(code) = entry.code() {
        let _ = write!(line, " {}", code.word());
    }
    if let Some(key) = entry.key() {
        let _ = write!(line, " key={}", key.short());
    }
    let _ = write!(line, " {}", millis(entry.took));
    if let Some(took) = entry.said.upstream_took {
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
    put("peer", entry.peer.ip().to_string().into());
    put("method", entry.method.as_str().into());
    put("path", shown(entry.path()).into());
    put("status", entry.status.map(|status| status.as_u16()).into());
    put("decision", entry.decision().into());
    if let Some(code) = entry.code() {
        put("code", code.word().into());
    }
    if let Some(key) = entry.key() {
        put("key", key.short().to_string().into());
    }
    put("ms", as_millis(entry.took).into());
    if let Some(took) = entry.said.upstream_took {
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

/// Lines on their way to standard output.
pub(crate) struct Log {
    form: Form,
    waiting: Arc<Waiting>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

#[derive(Default)]
struct Waiting {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    ended: bool,
}

impl Log {
    /// A log in this form, with a thread of its own that writes it.
    pub(crate) fn new(form: Form) -> Result<Self> {
        let waiting = Arc::new(Waiting::default());
        let theirs = Arc::clone(&waiting);
        let thread = thread::Builder::new().name("semel-access-log".to_owned()).spawn(move || theirs.write());
        let thread = thread.map_err(|error| {
            Error::new(
                ErrorKind::Unavailable,
                format!("no thread for the access log: {error}; raise the limit"),
            )
        })?;
        Ok(Self { form, waiting, thread: Mutex::new(Some(thread)) })
    }

    /// Adds a line, or drops it if whoever reads the log is too slow.
    fn add(&self, line: &[u8]) {
        let mut lines = self.waiting.lines();
        if lines.bytes.len().saturating_add(line.len()) > WAITING_BYTES_MAX {
            drop(lines);
            metrics::counter!(semel::metrics::LOG_LINES_DROPPED.name).increment(1);
            return;
        }
        let was_empty = lines.bytes.is_empty();
        lines.bytes.extend_from_slice(line);
        drop(lines);
        // Only the first line wakes the writer; it finds the others when it has gathered.
        if was_empty {
            self.waiting.changed.notify_one();
        }
    }

    /// Writes the last lines. What comes later is not written any more.
    pub(crate) async fn end(&self) {
        self.say_ended();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Whoever reads the log may have stopped reading: nobody waits for that for ever.
            let written = tokio::task::spawn_blocking(|| drop(thread.join()));
            drop(tokio::time::timeout(END_TIMEOUT, written).await);
        }
    }

    fn say_ended(&self) {
        self.waiting.lines().ended = true;
        self.waiting.changed.notify_one();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.say_ended();
    }
}

impl Waiting {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) {
        let mut gathered = Vec::new();
        loop {
            let ended = self.gather(&mut gathered);
            // Nobody can be told that standard output is gone, and the proxy goes on without it.
            let _ = std::io::stdout().lock().write_all(&gathered);
            gathered.clear();
            if ended {
                return;
            }
        }
    }

    /// Takes what waits, once there is something. Says whether the log has ended.
    fn gather(&self, gathered: &mut Vec<u8>) -> bool {
        let lines = self.lines();
        let idle = |lines: &mut Lines| lines.bytes.is_empty() && !lines.ended;
        let lines = self.changed.wait_while(lines, idle).unwrap_or_else(PoisonError::into_inner);
        let ended = |lines: &mut Lines| !lines.ended;
        let waited = self.changed.wait_timeout_while(lines, GATHER, ended);
        let (mut lines, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(gathered, &mut lines.bytes);
        lines.ended
    }
}

/// What requests came to.
pub(crate) struct Tally {
    by_decision: [Kind; DECISIONS.len()],
}

struct Kind {
    requests: [Counter; CLASSES.len()],
    seconds: Histogram,
}

impl Tally {
    /// Counters of whatever recorder is installed now.
    pub(crate) fn new() -> Self {
        let by_decision = DECISIONS.map(|decision| Kind {
            requests: CLASSES.map(
                |class| counter!(semel::metrics::REQUESTS.name, "decision" => decision, "status" => class),
            ),
            seconds: histogram!(semel::metrics::REQUEST_SECONDS.name, "decision" => decision),
        });
        Self { by_decision }
    }

    fn count(&self, entry: &Entry) {
        let decision = entry.decision();
        let class = entry.status.map_or(0, |status| usize::from(status.as_u16() / 100));
        let place = DECISIONS.iter().position(|known| *known == decision);
        let Some(kind) = place.and_then(|place| self.by_decision.get(place)) else { return };
        if let Some(requests) = kind.requests.get(class) {
            requests.increment(1);
        }
        kind.seconds.record(entry.took);
    }
}

#[cfg(test)]
mod line_tests;

#[cfg(test)]
mod tests {
    use semel_http::DecisionKind;

    use super::*;

    fn entry() -> Entry {
        let request = Request::post("/charges?card=4242").body(()).expect("is a request");
        let peer = "192.0.2.1:4711".parse().expect("is an address");
        let mut entry = Entry::new(Arc::new(Observed::new(None)), &request, peer, None);
        let mut response = Response::new(());
        *response.status_mut() = http::StatusCode::from_u16(409).expect("is a status");
        let key = semel::Key::new("http", "secret").expect("is a key").id();
        let decided = Decided { decision: DecisionKind::Busy, code: Some(Code::InFlight), key: Some(key) };
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

    #[test]
    fn a_request_whose_client_left_before_its_answer_is_logged_as_gone_and_not_whole() {
        let request = Request::get("/").body(()).expect("is a request");
        let peer = "192.0.2.1:4711".parse().expect("is an address");
        let entry = Entry::new(Arc::new(Observed::new(None)), &request, peer, None);
        let json = Form::Json.line(&entry, Timestamp::from_micros(0));
        let read: Value = serde_json::from_slice(&json).expect("is JSON");
        assert_eq!((&read["decision"], &read["whole"]), (&"gone".into(), &false.into()));
    }
}
