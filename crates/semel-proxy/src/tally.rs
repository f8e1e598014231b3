//! What requests came to, as metrics. Each has its place from the start, so that counting is an addition.

use metrics::{Counter, Histogram, counter, histogram};

use super::access_log::Entry;

/// What was decided about a request, in the order of the counters.
const DECISIONS: [&str; 9] =
    ["pass", "run", "replay", "busy", "mismatch", "held", "unprotected", "refused", "gone"];
/// By status; the first is for requests that got none.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// What requests came to.
pub(super) struct Tally {
    by_decision: [Kind; DECISIONS.len()],
}

struct Kind {
    requests: [Counter; CLASSES.len()],
    seconds: Histogram,
}

impl Tally {
    /// Counters of whatever recorder is installed now.
    pub(super) fn new() -> Self {
        let by_decision = DECISIONS.map(|decision| Kind {
            requests: CLASSES.map(
                |class| counter!("semel_http_requests_total", "decision" => decision, "status" => class),
            ),
            seconds: histogram!("semel_http_request_seconds", "decision" => decision),
        });
        Self { by_decision }
    }

    pub(super) fn count(&self, entry: &Entry) {
        let decision = entry.decision();
        let class = entry.status().map_or(0, |status| usize::from(status.as_u16() / 100));
        let place = DECISIONS.iter().position(|known| *known == decision);
        let Some(kind) = place.and_then(|place| self.by_decision.get(place)) else { return };
        if let Some(requests) = kind.requests.get(class) {
            requests.increment(1);
        }
        kind.seconds.record(entry.took());
    }
}
