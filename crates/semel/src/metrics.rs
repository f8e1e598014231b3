//! Every metric of semel in one table: its name, kind, labels with their values, and meaning.
//!
//! Metrics go through the `metrics` facade. What records one takes its name from here; `semel serve` and `semel proxy`
//! [describe] all and [register] theirs when they start, so that every series of a counter exists at 0
//! before anything happened: an alert on its increase then sees the first one. `docs/metrics.md` is this table.

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// As it is exposed.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: MetricKind,
    /// What records it.
    pub part: Part,
    /// Its labels.
    pub labels: &'static [MetricLabel],
    /// What it means: its `HELP` text.
    pub help: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, from 0 at the start of the process.
    Counter,
    /// A current value.
    Gauge,
    /// Buckets, a sum and a count; in seconds.
    Histogram,
}

/// A label of a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricLabel {
    /// Its name.
    pub name: &'static str,
    /// All values that it can have; empty for a set that is not closed, as the names of pipelines.
    pub values: &'static [&'static str],
}

/// What records a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The engine, in every process that has one.
    Engine,
    /// Client connections of `semel serve` and `semel proxy`.
    Listener,
    /// `semel proxy`.
    Proxy,
    /// `semel serve`, and the admin side of `semel proxy`.
    Monitoring,
    /// A consumer of a stream.
    Stream,
}

impl MetricKind {
    /// The word of the exposition format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

const fn label(name: &'static str, values: &'static [&'static str]) -> MetricLabel {
    MetricLabel { name, values }
}

macro_rules! table {
    ($($constant:ident: $kind:ident of $part:ident, $name:literal, [$($label:expr),*], $help:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: MetricKind::$kind,
                part: Part::$part,
                labels: &[$($label),*],
                help: $help,
            };
        )*

        /// All of them.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

/// What the engine decides about a claim.
pub const DECISION_VALUES: &[&str] = &["run", "replay", "busy", "mismatch", "held", "unprotected"];
/// What came of a request at the proxy.
pub const REQUEST_VALUES: &[&str] =
    &["pass", "run", "replay", "busy", "mismatch", "held", "unprotected", "refused", "gone"];
/// Statuses of responses by their first digit; `none` for requests whose client left before there was one.
pub const STATUS_VALUES: &[&str] = &["none", "1xx", "2xx", "3xx", "4xx", "5xx"];
/// How an exchange with the upstream failed.
pub const UPSTREAM_ERROR_VALUES: &[&str] =
    &["unreachable", "refused", "lost", "too_slow", "incomplete", "abandoned", "switched", "malformed"];
/// States of records; `lapsed` are those of `running` whose lease is over.
pub const STATE_VALUES: &[&str] = &["running", "lapsed", "held", "done", "released"];

table! {
    DECISIONS: Counter of Engine, "semel_decisions_total", [label("decision", DECISION_VALUES)],
        "Claims by what was decided.";
    LOST: Counter of Engine, "semel_lost_total", [],
        "Runs whose permit was another's when they ended.";
    SWEPT: Counter of Engine, "semel_swept_total", [],
        "Records removed after their retention.";
    CLAIM_SECONDS: Histogram of Engine, "semel_claim_seconds", [],
        "Duration of claims, the store included, in seconds.";
    SETTLE_SECONDS: Histogram of Engine, "semel_settle_seconds", [],
        "Duration of completes and releases, the store included, in seconds.";
    STORE_SETTINGS_BROKEN: Gauge of Engine, "semel_store_settings_broken", [],
        "Settings of the store's server that break its promise, by the last check (every 20 s).";
    CONNECTIONS_REFUSED: Counter of Listener, "semel_http_connections_refused_total", [],
        "Client connections closed at once because there are as many as there may be.";
    CONNECTIONS_EVICTED: Counter of Listener, "semel_http_connections_evicted_total", [],
        "Client connections without a request that lost their place to another connection.";
    LOG_LINES_DROPPED: Counter of Listener, "semel_http_log_lines_dropped_total", [],
        "Lines of the access log that were dropped because its reader is too slow.";
    IN_FLIGHT: Gauge of Listener, "semel_http_in_flight", [],
        "Requests in flight, until the last byte of their response.";
    REQUESTS: Counter of Proxy, "semel_http_requests_total",
        [label("decision", REQUEST_VALUES), label("status", STATUS_VALUES)],
        "Requests of clients by decision and class of the status.";
    REQUEST_SECONDS: Histogram of Proxy, "semel_http_request_seconds", [label("decision", REQUEST_VALUES)],
        "Duration of requests of clients, to the last byte of the response, in seconds.";
    RUNS: Gauge of Proxy, "semel_http_runs", [],
        "Requests with a key that run now, also those whose client left.";
    CONNECTIONS: Gauge of Proxy, "semel_http_connections", [],
        "Client connections that are open.";
    UPSTREAM_CONNECTS: Counter of Proxy, "semel_http_upstream_connects_total", [],
        "Connections opened to the upstream.";
    UPSTREAM_ABANDONED: Counter of Proxy, "semel_http_upstream_abandoned_total", [],
        "Exchanges with the upstream whose client left.";
    UPSTREAM_ERRORS: Counter of Proxy, "semel_http_upstream_errors_total", [label("kind", UPSTREAM_ERROR_VALUES)],
        "Exchanges with the upstream that failed, by how.";
    PROBES: Counter of Proxy, "semel_probes_total", [label("result", &["landed", "not_landed", "cannot_tell"])],
        "Probes of whether the effect of an earlier run landed, by what they found.";
    PROBES_DEFERRED: Counter of Proxy, "semel_probes_deferred_total", [],
        "Retries of held keys that were not probed because as many probes were in flight as may be.";
    PROBE_SECONDS: Histogram of Proxy, "semel_probe_seconds", [],
        "Duration of probes, in seconds.";
    PROBES_IN_FLIGHT: Gauge of Proxy, "semel_probes_in_flight", [],
        "Probes that wait for their answer.";
    STORE_READY: Gauge of Monitoring, "semel_store_ready", [],
        "1 if the store takes claims, by the last probe (every 20 s at least), else 0.";
    RECORDS: Gauge of Monitoring, "semel_records", [label("state", STATE_VALUES)],
        "Records by state, by the last census; lapsed ones also count as running. NaN before the first census. \
         A census begins nine times as long after the one before as that took, and 2 s after it at least; \
         semel_census_age_seconds says how old it is.";
    OLDEST_HELD: Gauge of Monitoring, "semel_oldest_held_age_seconds", [],
        "How long the record has been held that is held for longest, by the last census, in seconds; 0 if none is held.";
    CENSUS_AGE: Gauge of Monitoring, "semel_census_age_seconds", [],
        "Time since the last census ended, in seconds. NaN before the first. While neither a scrape nor a page asks for \
         one minute, no census is made: the first scrape after that shows the last one.";
    STREAM_DELIVERED: Counter of Stream, "semel_stream_delivered_total", [label("pipeline", &[])],
        "Events delivered by the source, redeliveries included.";
    STREAM_EVENTS: Counter of Stream, "semel_stream_events_total",
        [label("pipeline", &[]), label("result", &["ran", "duplicate", "dead_letter", "given_back"])],
        "Events by what became of them.";
    STREAM_RETRIES: Counter of Stream, "semel_stream_retries_total", [label("pipeline", &[])],
        "Attempts after a failed one.";
    STREAM_COMMITS: Counter of Stream, "semel_stream_commits_total", [label("pipeline", &[])],
        "Offsets committed.";
    STREAM_LAG: Gauge of Stream, "semel_stream_lag", [label("pipeline", &[])],
        "Events that the source has and the consumer has not, as far as the source says.";
}

/// Gives the recorder that is installed the `HELP` text of every metric.
pub fn describe() {
    for Metric { name, kind, help, .. } in ALL {
        match kind {
            MetricKind::Counter => metrics::describe_counter!(*name, *help),
            MetricKind::Gauge => metrics::describe_gauge!(*name, *help),
            MetricKind::Histogram => metrics::describe_histogram!(*name, *help),
        }
    }
}

/// Makes every series of these parts exist. Labels whose set is not closed are left to what records them.
pub fn register(parts: &[Part]) {
    for metric in ALL.iter().filter(|metric| parts.contains(&metric.part)) {
        for labels in metric.series() {
            match metric.kind {
                MetricKind::Counter => metrics::counter!(metric.name, labels).increment(0),
                MetricKind::Gauge => drop(metrics::gauge!(metric.name, labels)),
                MetricKind::Histogram => drop(metrics::histogram!(metric.name, labels)),
            }
        }
    }
}

impl Metric {
    /// Every combination of the values of its labels; none if one of the sets is not closed.
    pub fn series(&self) -> Vec<Vec<metrics::Label>> {
        let none = vec![Vec::new()];
        self.labels.iter().fold(none, |series, label| {
            let with = |labels: &Vec<metrics::Label>, value: &'static str| {
                let one = metrics::Label::from_static_parts(label.name, value);
                labels.iter().cloned().chain([one]).collect::<Vec<_>>()
            };
            series
                .iter()
                .flat_map(|labels| label.values.iter().map(move |value| with(labels, value)))
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_a_series_for_every_combination_of_closed_labels() {
        assert_eq!(LOST.series().len(), 1);
        assert_eq!(REQUESTS.series().len(), REQUEST_VALUES.len() * STATUS_VALUES.len());
        assert_eq!(STREAM_EVENTS.series().len(), 0);
    }
}
