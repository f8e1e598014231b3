//! Numbers as markdown: tables, and how a number is written.

use std::fmt::Write;

use super::Bar;

/// Which numbers are reached, and which are not.
pub(crate) fn bars(bars: &[Bar]) -> String {
    let heading = ["", "wanted", "found", ""].map(str::to_owned);
    let line = |bar: &Bar| {
        let verdict = if bar.reached { "reached" } else { "NOT reached" };
        [bar.name.clone(), bar.wanted.clone(), bar.found.clone(), verdict.to_owned()]
    };
    table(&heading, bars.iter().map(line))
}

/// A markdown table that also lines up where it is not rendered: the first column to the left, numbers to the right.
pub(crate) fn table<const N: usize>(
    heading: &[String; N],
    lines: impl Iterator<Item = [String; N]>,
) -> String {
    let lines: Vec<_> = lines.collect();
    let width = |column: usize| {
        let cells = lines.iter().chain([heading]).map(|line| line[column].chars().count());
        cells.max().unwrap_or(0).max(3)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let row = |line: &[String; N]| {
        let mut text = String::from("|");
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            // Writing to a string cannot fail.
            let _ = match column {
                0 => write!(text, " {cell:<width$} |"),
                _ => write!(text, " {cell:>width$} |"),
            };
        }
        text + "\n"
    };
    let rule = |(column, width): (usize, usize)| {
        if column == 0 {
            format!("{}|", "-".repeat(width + 2))
        } else {
            format!("{}:|", "-".repeat(width + 1))
        }
    };
    let rule: String = widths.into_iter().enumerate().map(rule).collect();
    let body: String = lines.iter().map(row).collect();
    format!("{}|{rule}\n{body}", row(heading))
}

/// A rate in thousands.
pub(crate) fn thousands(rate: f64) -> String {
    format!("{:.0}", rate / 1e3)
}

/// 1234567 as 1,234,567.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate as a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is small and not negative"
)]
pub(crate) fn whole(rate: f64) -> String {
    grouped(rate.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_and_keeps_its_columns() {
        let text = table(&["", "n"].map(str::to_owned), [["a".to_owned(), "1,000".to_owned()]].into_iter());
        assert_eq!(text, "|     |     n |\n|-----|------:|\n| a   | 1,000 |\n");
    }
}
