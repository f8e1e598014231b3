//! Decisions a second over the last 15 minutes, as a line with a scale. Drawn with attributes alone: the policy allows no style
//! inside a page.

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
        let top = scale_top(peak);
        let described =
            format!("{}: {now} a second now, at most {most}, {} in 15 minutes", self.word, grouped(total));
        let (line, area) = paths(&counts, top);
        html! {
            figure class={ "chart " (self.word) } {
                figcaption {
                    span.word { (self.word) }
                    span.rate { (now) span.unit { "/s" } }
                }
                p.meaning { (self.meaning) }
                div.plot {
                    div.y-axis aria-hidden="true" { span { (a_second(top)) "/s" } span { "0" } }
                    svg viewBox="0 0 179 50" preserveAspectRatio="none" role="img" aria-label=(described) {
                        path.base d="M0 1H179M0 25H179M0 49H179" vector-effect="non-scaling-stroke" {}
                        @if !counts.is_empty() {
                            path.area d=(area) {}
                            path.line d=(line) vector-effect="non-scaling-stroke" {}
                        }
                    }
                }
                div.x-axis aria-hidden="true" { span { "15 min ago" } span { "now" } }
                p.foot { span { "peak " (most) "/s" } span { (grouped(total)) " in 15 min" } }
            }
        }
    }
}

/// The count at the top of the scale: the smallest of 1, 2, 5, 10, 20, 50, … a second that the peak fits under.
fn scale_top(peak: u64) -> u64 {
    let mut unit = Rates::SPAN.as_secs().max(1);
    loop {
        for step in [1, 2, 5] {
            let top = unit.saturating_mul(step);
            if top >= peak {
                return top;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// A count of one sample, as a rate.
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

/// The line, and the area below it. The newest sample is at the right, however few there are.
fn paths(counts: &[u64], top: u64) -> (String, String) {
    let first = SAMPLES.saturating_sub(counts.len());
    let mut line = String::new();
    for (index, count) in counts.iter().enumerate() {
        let joint = if index == 0 { 'M' } else { 'L' };
        // Writing to a string cannot fail.
        let _ = write!(line, "{joint}{} {:.1}", first.saturating_add(index), height(*count, top));
    }
    let area = format!("{line}L179 49L{first} 49Z");
    (line, area)
}

fn height(count: u64, top: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a line is a few dozen pixels high")]
    let share = count as f64 / top.max(1) as f64;
    1.0 + HEIGHT * (1.0 - share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_sample_is_at_the_right_and_the_top_of_the_scale_at_the_top() {
        let (line, area) = paths(&[0, 10, 5], 10);
        assert_eq!(line, "M177 49.0L178 1.0L179 25.0");
        assert!(area.starts_with(&line) && area.ends_with("L179 49L177 49Z"));
    }

    #[test]
    fn a_rate_is_shown_to_a_tenth_until_that_does_not_matter() {
        assert_eq!([0, 1, 7, 50, 600].map(a_second), ["0", "0.2", "1.4", "10", "120"]);
        assert_eq!(a_second(12_345), "2,469");
    }

    #[test]
    fn a_scale_ends_at_a_round_rate_that_the_peak_fits_under() {
        let tops = [0, 5, 6, 11, 26, 51, 12_345].map(|peak| a_second(scale_top(peak)));
        assert_eq!(tops, ["1", "1", "2", "5", "10", "20", "5,000"]);
    }

    #[test]
    fn a_scale_ends_for_every_count() {
        assert_eq!(scale_top(u64::MAX), u64::MAX);
    }
}
