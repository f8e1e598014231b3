//! What is noted of each request at its end: a line in the access log, and what it came to as metrics.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Extensions, Method, Request, Response, StatusCode, Uri};
use metrics::{Counter, Histogram, counter, histogram};
use semel::RecordId;
use semel_http::{Code, Decided, Observe};
use tokio::time::Instant;

use crate::front::Observed;
use semel_listen::OneInFlight;
use semel_ops::access_log::AccessLine;

/// What was decided about a request, in the order of the counters.
const DECISIONS: [&str; 9] =
    ["pass", "run", "replay", "busy", "mismatch", "held", "unprotected", "refused", "gone"];
/// The run of a client that left has ended: a line of its own, and no decision.
const ENDED: &str = "ended";
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

/// What is known of a request when it comes, and its record as soon as that is known. It outlives its client.
pub(crate) struct LoggedRequest {
    observed: Arc<Observed>,
    method: Method,
    uri: Uri,
    peer: IpAddr,
    request_id: Option<Box<str>>,
    started_at: Instant,
    key: Mutex<Option<RecordId>>,
}

impl LoggedRequest {
    pub(crate) fn new<B>(
        observed: Arc<Observed>,
        request: &Request<B>,
        peer: IpAddr,
        request_id: Option<&str>,
    ) -> Arc<Self> {
        Arc::new(Self {
            observed,
            method: request.method().clone(),
            uri: request.uri().clone(),
            peer,
            request_id: request_id.map(Into::into),
            started_at: Instant::now(),
            key: Mutex::default(),
        })
    }

    fn key(&self) -> Option<RecordId> {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line of this request, with nothing known of its answer.
    fn line(&self) -> AccessLine<'_> {
        AccessLine {
            peer: self.peer,
            method: self.method.as_str(),
            path: self.uri.path(),
            status: None,
            decision: None,
            code: None,
            key: self.key(),
            token: None,
            request_id: self.request_id.as_deref(),
            took: self.started_at.elapsed(),
            upstream_took: None,
            is_whole: false,
        }
    }
}

impl Observe for LoggedRequest {
    fn identified(&self, key: RecordId) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }

    fn ended_without_client(&self, answer: Option<(StatusCode, &Extensions)>) {
        let Some(log) = &self.observed.log else { return };
        let answer = answer.map(|(status, extensions)| Answer::of(status, extensions));
        let line = AccessLine { decision: Some(ENDED), is_whole: true, ..self.line() };
        log.write(&answer.map_or(line, |answer| AccessLine {
            status: Some(answer.status.as_u16()),
            code: answer.code().map(Code::word),
            upstream_took: answer.said.upstream_took,
            ..line
        }));
    }
}

/// What is known of an answer once its head is.
#[derive(Clone, Copy)]
struct Answer {
    status: StatusCode,
    decided: Option<Decided>,
    said: Said,
}

impl Answer {
    fn of(status: StatusCode, extensions: &Extensions) -> Self {
        let said = extensions.get().copied().unwrap_or_default();
        Self { status, decided: extensions.get().copied(), said }
    }

    fn decision(&self) -> &'static str {
        match &self.decided {
            Some(decided) => decided.decision.as_str(),
            None if self.said.code.is_some() => "refused",
            None => "pass",
        }
    }

    fn code(&self) -> Option<Code> {
        self.said.code.or(self.decided.and_then(|decided| decided.code))
    }
}

/// A request until the last byte of its answer. Dropped, it is noted.
pub(crate) struct Entry {
    request: Arc<LoggedRequest>,
    /// `None` if the client went before there was an answer.
    answer: Option<Answer>,
    is_whole: bool,
    /// Dropped with it: in flight means until the last byte was handed over.
    _in_flight: Option<OneInFlight>,
}

impl Entry {
    pub(crate) fn new(request: Arc<LoggedRequest>, in_flight: Option<OneInFlight>) -> Self {
        Self { request, answer: None, is_whole: false, _in_flight: in_flight }
    }

    /// The head of the answer is known.
    pub(crate) fn answered<B>(&mut self, response: &Response<B>) {
        self.answer = Some(Answer::of(response.status(), response.extensions()));
    }

    /// All of the answer was handed over.
    pub(crate) fn ended(&mut self) {
        self.is_whole = true;
    }

    fn decision(&self) -> &'static str {
        self.answer.as_ref().map_or("gone", Answer::decision)
    }

    fn line(&self) -> AccessLine<'_> {
        let line = AccessLine { decision: Some(self.decision()), ..self.request.line() };
        let Some(answer) = &self.answer else { return line };
        AccessLine {
            status: Some(answer.status.as_u16()),
            code: answer.code().map(Code::word),
            key: answer.decided.and_then(|decided| decided.key).or(line.key),
            upstream_took: answer.said.upstream_took,
            is_whole: self.is_whole,
            ..line
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let (line, observed) = (self.line(), &self.request.observed);
        observed.tally.count(self.decision(), line.status, line.took);
        if let Some(log) = &observed.log {
            log.write(&line);
        }
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

    fn count(&self, decision: &str, status: Option<u16>, took: Duration) {
        let class = status.map_or(0, |status| usize::from(status / 100));
        let place = DECISIONS.iter().position(|known| *known == decision);
        let Some(kind) = place.and_then(|place| self.by_decision.get(place)) else { return };
        if let Some(requests) = kind.requests.get(class) {
            requests.increment(1);
        }
        kind.seconds.record(took);
    }
}

#[cfg(test)]
mod tests {
    use semel_http::DecisionKind;

    use super::*;

    fn request() -> Arc<LoggedRequest> {
        let request = Request::post("/charges?card=4242").body(()).expect("is a request");
        let peer = "192.0.2.1".parse().expect("is an address");
        LoggedRequest::new(Arc::new(Observed::new(None)), &request, peer, Some("req-7"))
    }

    fn key() -> RecordId {
        semel::Key::new("http", "secret").expect("is a key").id()
    }

    fn response(status: u16, decided: Option<Decided>, said: Said) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(status).expect("is a status");
        response.extensions_mut().insert(said);
        if let Some(decided) = decided {
            response.extensions_mut().insert(decided);
        }
        response
    }

    #[test]
    fn a_line_says_who_decided_why_and_whether_all_of_the_answer_went_out() {
        let decided = |decision, code| Some(Decided { decision, code, key: Some(key()) });
        let nothing = Said::default();
        let unreachable = Said { code: Some(Code::UpstreamUnreachable), upstream_took: None };
        let run = decided(DecisionKind::Run, None);
        let busy = decided(DecisionKind::Busy, Some(Code::InFlight));
        for (status, about, said, is_whole, decision, code) in [
            (200, None, nothing, true, "pass", None),
            (200, None, nothing, false, "pass", None),
            (502, None, unreachable, true, "refused", Some("upstream_unreachable")),
            (201, run, nothing, true, "run", None),
            (502, run, unreachable, true, "run", Some("upstream_unreachable")),
            (201, decided(DecisionKind::Replay, None), nothing, false, "replay", None),
            (409, busy, nothing, true, "busy", Some("in_flight")),
        ] {
            let mut entry = Entry::new(request(), None);
            entry.answered(&response(status, about, said));
            if is_whole {
                entry.ended();
            }
            let line = entry.line();
            assert_eq!((line.status, line.decision, line.code), (Some(status), Some(decision), code));
            assert_eq!((line.is_whole, line.key), (is_whole, about.map(|_| key())));
            assert_eq!((line.path, line.request_id), ("/charges", Some("req-7")));
        }
    }

    #[test]
    fn a_client_that_left_before_its_answer_is_gone_and_its_key_is_known() {
        let entry = Entry::new(request(), None);
        assert_eq!((entry.line().decision, entry.line().key), (Some("gone"), None));
        entry.request.identified(key());
        let line = entry.line();
        assert_eq!((line.status, line.key, line.is_whole), (None, Some(key()), false));
    }

    #[test]
    fn every_decision_has_a_counter() {
        let kinds = [
            DecisionKind::Run,
            DecisionKind::Replay,
            DecisionKind::Busy,
            DecisionKind::Mismatch,
            DecisionKind::Held,
            DecisionKind::Unprotected,
            DecisionKind::Refused,
        ];
        for kind in kinds {
            assert!(DECISIONS.contains(&kind.as_str()), "{kind:?}");
        }
        assert!(DECISIONS.contains(&"pass") && DECISIONS.contains(&"gone"));
    }
}
