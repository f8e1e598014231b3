//! How a consumer stands, in one line and at its end.

use std::time::Duration;

use semel_stream::Report;

use super::source::SourceAddress;
use crate::terminal::{counted, grouped, span};

/// How many events are in work.
pub(super) fn in_work(report: &Report) -> u64 {
    let ended = [report.ran, report.duplicates, report.dead_letters, report.given_back];
    let begun = report.delivered.saturating_add(report.requeued);
    ended.iter().fold(begun, |left, ended| left.saturating_sub(*ended))
}

/// How many events have ended since, in each second.
#[expect(clippy::cast_precision_loss, reason = "a rate is read to three digits")]
pub(super) fn rate(before: &Report, report: &Report, took: Duration) -> f64 {
    let ended = |report: &Report| {
        [report.ran, report.duplicates, report.dead_letters].into_iter().fold(0, u64::saturating_add)
    };
    ended(report).saturating_sub(ended(before)) as f64 / took.as_secs_f64().max(1e-3)
}

/// In one line.
pub(super) fn line(report: &Report, rate: f64) -> String {
    let lag = report.lag.map_or_else(String::new, |lag| format!("  lag {}", grouped(lag)));
    format!(
        "{rate:.1}/s  done {}  duplicates {}  retries {}  dead letters {}  in work {}{lag}",
        grouped(report.ran),
        grouped(report.duplicates),
        grouped(report.retries),
        grouped(report.dead_letters),
        grouped(in_work(report)),
    )
}

/// At the end, whatever it was.
pub(super) fn account(source: &SourceAddress, pipeline: &str, report: &Report, took: Duration) -> String {
    let mut rows = vec![
        ("delivered", report.delivered, ""),
        ("requeued", report.requeued, "dead letters that were sent back, and taken up here"),
        ("processed", report.ran, ""),
        ("duplicates", report.duplicates, "had a receipt, and were not processed again"),
        ("retries", report.retries, "failed, and were tried again"),
        ("dead letters", report.dead_letters, "put aside: semel receipts PIPELINE --dead"),
        ("given back", report.given_back, "for others, or for later"),
        ("left open", in_work(report), "delivered, without a receipt: they will be delivered again"),
    ];
    rows.retain(|(name, count, _)| *count > 0 || matches!(*name, "delivered" | "processed"));
    let mut lines = vec![format!(
        "{pipeline} has read {source} for {}, {:.1} events a second:",
        span::shown(took),
        report.events_per_second
    )];
    for (name, count, note) in rows {
        let note = note.replace("PIPELINE", pipeline);
        lines.push(format!("  {name:<12} {:>9}  {note}", grouped(count)).trim_end().to_owned());
    }
    for (stream, position) in &report.offsets {
        lines.push(format!("  {stream} is read up to {position}"));
    }
    if let Some(lag @ 1..) = report.lag {
        lines.push(format!("  {} left to read", counted(lag, "event")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ran: u64) -> Report {
        Report {
            delivered: ran.saturating_add(5),
            ran,
            duplicates: 2,
            dead_letters: 1,
            lag: Some(1_000),
            ..Report::default()
        }
    }

    #[test]
    fn a_line_counts_what_is_still_in_work() {
        let line = line(&report(1_234), 7.25);
        assert_eq!(line, "7.2/s  done 1,234  duplicates 2  retries 0  dead letters 1  in work 2  lag 1,000");
    }

    #[test]
    fn a_rate_is_what_ended_between_two_looks() {
        let took = Duration::from_secs(2);
        assert!((rate(&report(10), &report(30), took) - 10.0).abs() < 1e-9);
        assert!(rate(&report(10), &report(10), Duration::ZERO).abs() < 1e-9);
    }

    #[test]
    fn an_account_says_what_happened_and_leaves_out_what_did_not() {
        let source = "file:events.jsonl".parse().expect("is fine");
        let account = account(&source, "orders", &report(7), Duration::from_secs(3));
        assert!(account.contains("orders has read file:events.jsonl for 3s"), "{account}");
        assert!(account.contains("processed            7\n"), "{account}");
        assert!(account.contains("semel receipts orders --dead"), "{account}");
        assert!(!account.contains("retries") && account.contains("1,000 events left"), "{account}");
    }
}
