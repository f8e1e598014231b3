//! What pages are made of: states, moments, keys, and lines over the last 15 minutes, drawn with attributes alone, as the policy
//! wants no styles inside a page.

use std::fmt::Write;
use std::time::Duration;

use maud::{Markup, html};
use semel::clock::Timestamp;
use semel::record::{Record, State};
use semel::{Key, Stats};

use crate::monitoring::{Rates, Sample};
use semel_ops::format::moment::{date, rfc3339, time};
use semel_ops::format::number::grouped;
use semel_ops::format::{scope, span};

/// Shorter than that, numbers only flicker.
const A_MOMENT: Duration = Duration::from_secs(1);
/// How many samples a chart has room for: those of 15 minutes.
const SAMPLES: usize = 180;
/// How high a chart is, in its own units.
const HEIGHT: f64 = 48.0;

/// The shapes that go with the words for states: nobody has to tell them by their colour.
const RUNNING: &str = "M3.2 1.8 10.2 6l-7 4.2z";
const LAPSED: &str = "M6 1.2 11.2 10.5H.8zM6 4.6v2.6M6 8.7v.4";
const DONE: &str = "M1.8 6.6 4.7 9.4l5.5-6.6";
const RELEASED: &str = "M9.9 4.4A4.2 4.2 0 1 0 10.2 6.6M10.3 1.6v3h-3";
const HELD: &str = "M3.9 2v8M8.1 2v8";

/// The state of a record, by word, shape and colour.
pub(super) fn state(record: &Record, now: Timestamp) -> Markup {
    let (class, word, shape) = match &record.state {
        State::Running(running) if running.lease_is_good(now) => ("state running", "running", RUNNING),
        State::Running(_) => ("state lapsed", "running, lapsed", LAPSED),
        State::Done(_) => ("state done", "done", DONE),
        State::Released(_) => ("state released", "released", RELEASED),
        State::Held(_) => ("state held", "held", HELD),
    };
    html! { span class=(class) data-test="key-state" { (sign(shape)) (word) } }
}

/// A word with the shape of a state.
pub(super) fn labelled(word: &str, label: &str) -> Markup {
    let shape = match word {
        "running" => RUNNING,
        "lapsed" => LAPSED,
        "done" => DONE,
        "released" => RELEASED,
        _ => HELD,
    };
    html! { span class={ "state " (word) } { (sign(shape)) (label) } }
}

fn sign(shape: &str) -> Markup {
    html! {
        svg.sign viewBox="0 0 12 12" width="12" height="12" aria-hidden="true" {
            path d=(shape) {}
        }
    }
}

/// A moment, and how far away it is.
pub(super) fn moment(at: Timestamp, now: Timestamp) -> Markup {
    html! {
        time datetime=(rfc3339(at)) { (date(at)) " " (time(at)) }
        span.muted { " · " (relative(at, now)) }
    }
}

/// How far away a moment is; when it is, for whoever points at it.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(rfc3339(at)) title={ (date(at)) " " (time(at)) " UTC" } { (relative(at, now)) } }
}

/// `3m 12s ago` or `in 3m 12s`.
pub(super) fn relative(at: Timestamp, now: Timestamp) -> String {
    let (away, is_to_come) = (now.since(at).max(at.since(now)), at > now);
    match (away < A_MOMENT, is_to_come) {
        (true, _) => "just now".to_owned(),
        (false, true) => format!("in {}", span::shown(away)),
        (false, false) => format!("{} ago", span::shown(away)),
    }
}

/// `3m 12s`; what is shorter than a second is a moment, as nobody reads faster.
pub(super) fn lasting(span: Duration) -> String {
    if span < A_MOMENT { "a moment".to_owned() } else { span::shown(span) }
}

/// A key as a link to its page: what it is called, and where it belongs.
pub(super) fn key_link(key: &Key) -> Markup {
    html! {
        a.key href={ "/keys/" (key.id()) } { bdi { (key.name()) } }
        span.of {
            @if key.scope().next().is_some() { bdi.scope { (scope::shown(key.scope())) } " " }
            bdi { (key.operation()) }
        }
    }
}

/// Something that is not there, with what to do about it.
pub(super) fn nothing(text: &str) -> Markup {
    html! { p.nothing { (text) } }
}

/// One kind of decision, over time.
pub(super) struct Chart {
    pub(super) word: &'static str,
    pub(super) meaning: &'static str,
    pub(super) count: fn(&Stats) -> u64,
}

impl Chart {
    pub(super) fn draw(&self, samples: &[Sample]) -> Markup {
        let counts: Vec<u64> = samples.iter().map(|sample| (self.count)(&sample.decisions)).collect();
        let total = counts.iter().copied().fold(0, u64::saturating_add);
        let peak = counts.iter().copied().max().unwrap_or(0);
        let (now, most) = (a_second(counts.last().copied().unwrap_or(0)), a_second(peak));
        let told =
            format!("{}: {now} a second now, at most {most}, {} in 15 minutes", self.word, grouped(total));
        let (line, area) = paths(&counts, peak);
        html! {
            figure class={ "chart " (self.word) } {
                figcaption {
                    span.word { (self.word) }
                    span.rate { (now) span.unit { "/s" } }
                }
                svg viewBox="0 0 179 50" preserveAspectRatio="none" role="img" aria-label=(told) {
                    path.base d="M0 49H179" vector-effect="non-scaling-stroke" {}
                    @if !counts.is_empty() {
                        path.area d=(area) {}
                        path.line d=(line) vector-effect="non-scaling-stroke" {}
                    }
                }
                p.foot { span { (self.meaning) } span.most title="The most a second, and all in 15 minutes" { "peak " (most) " · " (grouped(total)) } }
            }
        }
    }
}

/// So many in one sample, as a rate.
fn a_second(count: u64) -> String {
    let tenths = count.saturating_mul(10).checked_div(Rates::SPAN.as_secs()).unwrap_or(0);
    if tenths == 0 && count > 0 {
        return "<0.1".to_owned();
    }
    if tenths >= 1_000 || tenths.is_multiple_of(10) {
        grouped(tenths / 10)
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

/// The line, and what is below it. The newest sample is at the right, however few there are.
fn paths(counts: &[u64], peak: u64) -> (String, String) {
    let first = SAMPLES.saturating_sub(counts.len());
    let mut line = String::new();
    for (index, count) in counts.iter().enumerate() {
        let joint = if index == 0 { 'M' } else { 'L' };
        // Writing to a string cannot fail.
        let _ = write!(line, "{joint}{} {:.1}", first.saturating_add(index), height(*count, peak));
    }
    let area = format!("{line}L179 49L{first} 49Z");
    (line, area)
}

fn height(count: u64, peak: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a line is a few dozen pixels high")]
    let share = count as f64 / peak.max(1) as f64;
    1.0 + HEIGHT * (1.0 - share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_sample_is_at_the_right_and_the_highest_at_the_top() {
        let (line, area) = paths(&[0, 10, 5], 10);
        assert_eq!(line, "M177 49.0L178 1.0L179 25.0");
        assert!(area.starts_with(&line) && area.ends_with("L179 49L177 49Z"));
    }

    #[test]
    fn a_rate_is_told_to_a_tenth_until_that_does_not_matter() {
        assert_eq!([0, 1, 7, 50, 600].map(a_second), ["0", "0.2", "1.4", "10", "120"]);
        assert_eq!(a_second(12_345), "2,469");
    }
}
