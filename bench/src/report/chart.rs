//! Horizontal bars with axes and labels, as SVG.
use std::fmt::Write;

use super::page::{Shown, WHOLE};
use super::rows::{Metric, Row, Spread};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 280.0;
const RIGHT: f64 = 190.0;
const BAR: f64 = 20.0;
const GAP: f64 = 12.0;
const HEAD: f64 = 108.0;
const PANEL_HEAD: f64 = 34.0;
const PANEL_FOOT: f64 = 62.0;
const INK: &str = "#1f2933";
const FAINT: &str = "#66727f";
const GRID: &str = "#e3e7eb";
/// Told apart by lightness too, for readers who do not see the hues.
const OWN_COLOURS: [&str; 2] = ["#1d5fa8", "#7fb0e0"];
const PEER_COLOURS: [&str; 5] = ["#8a5a00", "#b8860b", "#d4a72c", "#ecd48f", "#8a949e"];

/// One set of axes, with groups of bars.
pub(crate) struct Panel {
    title: String,
    axis: &'static str,
    groups: Vec<(String, Vec<ChartBar>)>,
}

pub(crate) struct ChartBar {
    pub(crate) name: String,
    pub(crate) spread: Spread,
    pub(crate) label: String,
}

impl ChartBar {
    /// The median and range of a row, labelled with the median and a note.
    pub(crate) fn of(row: &Row, metric: Metric, shown: Shown, note: &str) -> Self {
        let [median, min, max] =
            row.spread(metric).map_or([f64::NAN; 3], |found| [found.median, found.min, found.max]);
        let spread =
            Spread { median: median * shown.factor, min: min * shown.factor, max: max * shown.factor };
        let note = if note.is_empty() { String::new() } else { format!("  ({note})") };
        Self { name: row.case.contestant.to_owned(), spread, label: shown.text(median) + &note }
    }

    /// A rate, with the p99 of its calls.
    pub(crate) fn rate(row: &Row) -> Self {
        Self::of(row, Metric::PerSecond, WHOLE, &format!("p99 {:.1} ms", row.median(Metric::P99Us) / 1e3))
    }
}

impl Panel {
    /// Bars of these rows, in groups by their label.
    pub(crate) fn new<'a>(
        title: impl Into<String>,
        axis: &'static str,
        rows: impl Iterator<Item = &'a Row>,
        bar: impl Fn(&Row) -> (String, ChartBar),
    ) -> Self {
        let mut groups: Vec<(String, Vec<ChartBar>)> = Vec::new();
        for (label, bar) in rows.map(bar) {
            match groups.iter_mut().find(|(found, _)| *found == label) {
                Some((_, bars)) => bars.push(bar),
                None => groups.push((label, vec![bar])),
            }
        }
        Self { title: title.into(), axis, groups }
    }
}

/// The panels below each other, under a title and at most three lines of notes. Bars with these names are blue.
pub(super) fn draw(title: &str, notes: &[String], own: &[&str], panels: &[Panel]) -> String {
    let height = HEAD + panels.iter().map(Panel::height).sum::<f64>();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"13\" fill=\"{INK}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    text(&mut svg, (24.0, 34.0), "font-size=\"19\" font-weight=\"600\"", title);
    for (note, y) in notes.iter().zip([54.0, 70.0, 86.0]) {
        text(&mut svg, (24.0, y), &format!("font-size=\"11\" fill=\"{FAINT}\""), note);
    }
    let (mut top, colours) = (HEAD, colours(own, panels));
    for panel in panels {
        panel.draw(&mut svg, &colours, top);
        top += panel.height();
    }
    svg + "</svg>\n"
}

type Colours<'a> = std::collections::BTreeMap<&'a str, &'static str>;

/// The next colour for every new name.
fn colours<'a>(own: &[&str], panels: &'a [Panel]) -> Colours<'a> {
    let (mut own_left, mut peers_left) = (OWN_COLOURS.iter().cycle(), PEER_COLOURS.iter().cycle());
    let mut colours = Colours::new();
    for bar in panels.iter().flat_map(|panel| &panel.groups).flat_map(|(_, bars)| bars) {
        let is_own = bar.name.starts_with("semel") || own.contains(&bar.name.as_str());
        let left = if is_own { &mut own_left } else { &mut peers_left };
        colours.entry(&bar.name).or_insert_with(|| left.next().unwrap_or(&FAINT));
    }
    colours
}

impl Panel {
    fn height(&self) -> f64 {
        let rows = self.groups.iter().map(|(_, bars)| bars.iter().map(|_| BAR + 4.0).sum::<f64>() + GAP);
        PANEL_HEAD + rows.sum::<f64>() + PANEL_FOOT
    }

    fn draw(&self, svg: &mut String, colours: &Colours<'_>, top: f64) {
        text(svg, (24.0, top + 18.0), "font-size=\"15\" font-weight=\"600\"", &self.title);
        let bars = self.groups.iter().flat_map(|(_, bars)| bars);
        let highest = bars.map(|bar| bar.spread.max).fold(0.0, f64::max);
        let step = tick_step(highest);
        let end = (highest / step).ceil().max(1.0) * step;
        let x = |value: f64| LEFT + value / end * (WIDTH - LEFT - RIGHT);
        let (axis_top, bottom) = (top + PANEL_HEAD - 6.0, top + self.height() - PANEL_FOOT);
        let style = format!("font-size=\"11\" fill=\"{FAINT}\"");
        let mut value = 0.0;
        while value <= end + step / 2.0 {
            line(svg, (x(value), axis_top), (x(value), bottom), GRID);
            let (style, digits) = (format!("{style} text-anchor=\"middle\""), usize::from(step < 1.0));
            text(svg, (x(value), bottom + 15.0), &style, &format!("{value:.digits$}"));
            value += step;
        }
        line(svg, (LEFT, axis_top), (LEFT, bottom), FAINT);
        text(svg, (LEFT, bottom + 32.0), &style, self.axis);
        let mut y = top + PANEL_HEAD;
        for (label, bars) in &self.groups {
            text(svg, (24.0, y + 15.0), "font-weight=\"500\"", label);
            for bar in bars {
                bar.draw(svg, colours, y, x);
                y += BAR + 4.0;
            }
            y += GAP;
        }
    }
}

impl ChartBar {
    fn draw(&self, svg: &mut String, colours: &Colours<'_>, y: f64, x: impl Fn(f64) -> f64) {
        let colour = colours.get(self.name.as_str()).unwrap_or(&FAINT);
        let name_style = format!("font-size=\"12\" fill=\"{FAINT}\" text-anchor=\"end\"");
        text(svg, (LEFT - 8.0, y + 15.0), &name_style, &self.name);
        let Spread { median, min, max } = self.spread;
        let width = (x(median) - LEFT).max(1.0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\" fill=\"{colour}\"/>"
        );
        if max > min {
            let middle = y + BAR / 2.0;
            line(svg, (x(min), middle), (x(max), middle), INK);
            for end in [min, max] {
                line(svg, (x(end), middle - 4.0), (x(end), middle + 4.0), INK);
            }
        }
        text(svg, (x(max) + 8.0, y + 15.0), "font-weight=\"600\" font-size=\"12\"", &self.label);
    }
}

/// A round number that makes four to ten steps up to `highest`.
fn tick_step(highest: f64) -> f64 {
    let magnitude = 10_f64.powf(highest.max(1e-9).log10().floor());
    let steps = [0.1, 0.2, 0.5, 1.0, 2.0].map(|share| share * magnitude);
    steps.into_iter().find(|step| highest / step <= 8.0).unwrap_or(magnitude)
}

fn text(svg: &mut String, (x, y): (f64, f64), style: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{words}</text>");
}

fn line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Case, rates};

    #[test]
    #[expect(clippy::float_cmp, reason = "round numbers are the point")]
    fn an_axis_has_round_steps_and_few_of_them() {
        assert_eq!([7.0, 95.0, 1_300.0, 450.0].map(tick_step), [1.0, 20.0, 200.0, 100.0]);
    }

    #[test]
    fn a_chart_shows_every_label_and_escapes_it() {
        let rows = rates(&[(Case::new("w", "a<b"), &[3.0, 2.0, 4.0])]);
        let bar = |row: &Row| ("G".to_owned(), ChartBar::of(row, Metric::PerSecond, WHOLE, "n"));
        let panels = [Panel::new("T", "A", rows.of("w"), bar)];
        let svg = draw("title", &["first".into(), "second".into()], &["a<b"], &panels);
        for part in ["title", "first", "second", ">T<", ">A<", ">G<", "a&lt;b", ">3  (n)<", OWN_COLOURS[0]] {
            assert!(svg.contains(part), "{part}");
        }
    }
}
