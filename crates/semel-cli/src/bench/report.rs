//! The numbers as a table for people or JSON for scripts.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::latency::Latency;
use super::measure::{Measured, OUTCOME_BYTES};
use super::plan::Plan;
use crate::terminal::number::grouped;

/// One JSON object; its members only ever grow in number.
#[derive(Debug, Serialize)]
struct Json {
    store: String,
    keys: usize,
    callers: usize,
    outcome_bytes: usize,
    runs: u64,
    replays: u64,
    cycles_per_second: f64,
    replays_per_second: f64,
    latency_us: Latencies,
}

#[derive(Debug, Serialize)]
struct Latencies {
    claim: Spans,
    complete: Spans,
    replay: Spans,
}

#[derive(Debug, Serialize)]
struct Spans {
    p50: f64,
    p99: f64,
    max: f64,
}

impl From<&Latency> for Spans {
    fn from(latency: &Latency) -> Self {
        Self {
            p50: micros(latency.quantile(0.5)),
            p99: micros(latency.quantile(0.99)),
            max: micros(latency.max()),
        }
    }
}

/// For scripts.
pub(super) fn json(plan: &Plan, measured: &Measured) -> Result<String> {
    let json = Json {
        store: plan.store.to_string(),
        keys: plan.keys.get(),
        callers: plan.callers.get(),
        outcome_bytes: OUTCOME_BYTES,
        runs: measured.runs,
        replays: measured.replays,
        cycles_per_second: per_second(measured.runs, measured.cycles_took),
        replays_per_second: per_second(measured.replays, measured.replays_took),
        latency_us: Latencies {
            claim: (&measured.claim).into(),
            complete: (&measured.complete).into(),
            replay: (&measured.replay).into(),
        },
    };
    serde_json::to_string_pretty(&json).context("the report cannot be written as JSON")
}

/// For people.
pub(super) fn table(plan: &Plan, measured: &Measured) -> String {
    let cycles = per_second(measured.runs, measured.cycles_took);
    let replays = per_second(measured.replays, measured.replays_took);
    let mut text = format!(
        "{}  {} keys, {} callers, outcomes of {OUTCOME_BYTES} bytes\n\n{:<10}{:>14}{:>12}{:>12}{:>12}\n",
        plan.store,
        grouped(plan.keys.get() as u64),
        plan.callers,
        "",
        "per second",
        "p50 µs",
        "p99 µs",
        "max µs"
    );
    let mut line = |name: &str, rate: String, latency: Option<&Latency>| {
        let spans = latency.map(Spans::from).map_or_else(String::new, |spans| {
            format!("{:>12.1}{:>12.1}{:>12.1}", spans.p50, spans.p99, spans.max)
        });
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<10}{rate:>14}{spans}");
    };
    line("cycle", rounded(cycles), None);
    line("  claim", String::new(), Some(&measured.claim));
    line("  complete", String::new(), Some(&measured.complete));
    line("replay", rounded(replays), Some(&measured.replay));
    let _ = writeln!(
        text,
        "\nEvery key ran once ({} runs); claimed again, every key was replayed ({} replays).",
        grouped(measured.runs),
        grouped(measured.replays)
    );
    text
}

#[expect(clippy::cast_precision_loss, reason = "a rate is read to three digits")]
fn per_second(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64().max(1e-9)
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is positive, and far below u64::MAX"
)]
fn rounded(rate: f64) -> String {
    grouped(rate.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_no_time_at_all_is_still_a_number() {
        assert!(per_second(5, Duration::ZERO).is_finite());
        assert_eq!(per_second(5, Duration::from_secs(2)).to_string(), "2.5");
    }
}
