//! A line over the last 15 minutes, drawn here: with attributes alone, as the policy wants no styles inside a page.

use std::fmt::Write;

use maud::{Markup, html};
use semel::Stats;

use crate::monitoring::{Rates, Sample};
use semel_ops::format::number::grouped;

/// How many samples a chart has room for: those of 15 minutes.
const SAMPLES: usize = 180;
/// How high a chart is, in its own units.
const HEIGHT: f64 = 48.0;

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
