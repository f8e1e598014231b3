//! Horizontal bars with axes and labels, as SVG.

use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 280.0;
const RIGHT: f64 = 190.0;
const BAR: f64 = 20.0;
const GAP: f64 = 12.0;
const PANEL_HEAD: f64 = 34.0;
const PANEL_FOOT: f64 = 62.0;
const INK: &str = "#1f2933";
const FAINT: &str = "#66727f";
const GRID: &str = "#e3e7eb";
/// Which name has which colour.
pub(crate) type Colours = [(&'static str, &'static str)];

/// One set of axes.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) axis: String,
    pub(crate) groups: Vec<Group>,
}

/// Bars that belong together.
pub(crate) struct Group {
    pub(crate) label: String,
    pub(crate) bars: Vec<Bar>,
}

/// One number.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) label: String,
}

impl Bar {
    /// A number without a spread.
    pub(crate) fn exact(name: &str, value: f64) -> Self {
        Self { name: name.to_owned(), value, low: value, high: value, label: format!("{value:.0}") }
    }
}

/// The panels below each other, under a title and a note.
pub(crate) fn draw(title: &str, note: &str, colours: &Colours, panels: &[Panel]) -> String {
    let height = 80.0 + panels.iter().map(Panel::height).sum::<f64>();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"13\" fill=\"{INK}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    text(&mut svg, (24.0, 34.0), "font-size=\"19\" font-weight=\"600\"", title);
    text(&mut svg, (24.0, 56.0), &format!("font-size=\"12\" fill=\"{FAINT}\""), note);
    let mut top = 80.0;
    for panel in panels {
        panel.draw(&mut svg, colours, top);
        top += panel.height();
    }
    svg + "</svg>\n"
}

impl Panel {
    fn height(&self) -> f64 {
        let rows = self.groups.iter().map(|group| group.bars.iter().map(|_| BAR + 4.0).sum::<f64>() + GAP);
        PANEL_HEAD + rows.sum::<f64>() + PANEL_FOOT
    }

    fn draw(&self, svg: &mut String, colours: &Colours, top: f64) {
        text(svg, (24.0, top + 18.0), "font-size=\"15\" font-weight=\"600\"", &self.title);
        let highest =
            self.groups.iter().flat_map(|group| &group.bars).map(|bar| bar.high).fold(0.0, f64::max);
        let step = tick_step(highest);
        let end = (highest / step).ceil().max(1.0) * step;
        let x = |value: f64| LEFT + value / end * (WIDTH - LEFT - RIGHT);
        let bottom = top + self.height() - PANEL_FOOT;
        self.draw_axis(svg, (top + PANEL_HEAD - 6.0, bottom), step, end, x);
        let mut y = top + PANEL_HEAD;
        for group in &self.groups {
            text(svg, (24.0, y + 15.0), "font-weight=\"500\"", &group.label);
            for bar in &group.bars {
                bar.draw(svg, colours, y, x);
                y += BAR + 4.0;
            }
            y += GAP;
        }
    }

    fn draw_axis(
        &self,
        svg: &mut String,
        (top, bottom): (f64, f64),
        step: f64,
        end: f64,
        x: impl Fn(f64) -> f64,
    ) {
        let mut value = 0.0;
        while value <= end + step / 2.0 {
            let at = x(value);
            line(svg, (at, top), (at, bottom), &format!("stroke=\"{GRID}\""));
            let style = format!("font-size=\"11\" fill=\"{FAINT}\" text-anchor=\"middle\"");
            let digits = usize::from(step < 1.0);
            text(svg, (at, bottom + 15.0), &style, &format!("{value:.digits$}"));
            value += step;
        }
        line(svg, (LEFT, top), (LEFT, bottom), &format!("stroke=\"{FAINT}\""));
        let style = format!("font-size=\"11\" fill=\"{FAINT}\"");
        text(svg, (LEFT, bottom + 32.0), &style, &self.axis);
    }
}

impl Bar {
    fn draw(&self, svg: &mut String, colours: &Colours, y: f64, x: impl Fn(f64) -> f64) {
        let colour = colours.iter().find(|(name, _)| *name == self.name).map_or(FAINT, |(_, colour)| colour);
        let name_style = format!("font-size=\"12\" fill=\"{FAINT}\" text-anchor=\"end\"");
        text(svg, (LEFT - 8.0, y + 15.0), &name_style, &self.name);
        let width = (x(self.value) - LEFT).max(1.0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\" fill=\"{colour}\"/>"
        );
        if self.high > self.low {
            let middle = y + BAR / 2.0;
            line(svg, (x(self.low), middle), (x(self.high), middle), &format!("stroke=\"{INK}\""));
            for end in [self.low, self.high] {
                line(svg, (x(end), middle - 4.0), (x(end), middle + 4.0), &format!("stroke=\"{INK}\""));
            }
        }
        text(
            svg,
            (x(self.high.max(self.value)) + 8.0, y + 15.0),
            "font-weight=\"600\" font-size=\"12\"",
            &self.label,
        );
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

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), style: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "round numbers are the point")]
    fn an_axis_has_round_steps_and_few_of_them() {
        assert_eq!([7.0, 95.0, 1_300.0, 450.0].map(tick_step), [1.0, 20.0, 200.0, 100.0]);
    }

    #[test]
    fn a_chart_shows_every_label_and_escapes_it() {
        let bars = vec![Bar::exact("a<b", 3.0)];
        let panel =
            Panel { title: "T".into(), axis: "A".into(), groups: vec![Group { label: "G".into(), bars }] };
        let svg = draw("title", "note", &[("a<b", "#123456")], &[panel]);
        for part in ["title", "note", ">T<", ">A<", ">G<", "a&lt;b", ">3<", "#123456"] {
            assert!(svg.contains(part), "{part}");
        }
    }
}
