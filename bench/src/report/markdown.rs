//! The tables that are printed and kept.

use std::fmt::Write;

use super::Facts;
use crate::inputs::{KEY_BYTES, Response};
use crate::memory::{Bar, BoundCase, Footprint, Rate, Results, Work};

/// All numbers of a run, for people.
pub(crate) fn markdown(results: &Results) -> String {
    let Facts { cores, cpu, system } = &results.facts;
    let settings = &results.settings;
    let mut text = format!(
        "# Memory: the engine and the memory store beside a DashMap\n\n\
         {cores} cores, {cpu}, {system}. {} keys of {KEY_BYTES} bytes before each window, outcomes of {} bytes, \
         windows of {} calls,\nmedian (min to max) of {} interleaved rounds, thousands per second. Calls come from \
         tokio tasks, one a thread, each making one call after the other;\nevery call goes from texts to an answer. \
         Ratios are medians of each round's own ratio; by CPU, they leave out what other processes took.\nThe \
         usual DashMap keeps records as web projects write them (texts, a status, a response with headers), the lean one as \
         few bytes as would do;\nsemel keeps the same response, as bytes. Bars are judged by the usual one.\n\n",
        grouped(settings.keys),
        Response::new().encoded().len(),
        grouped(settings.window),
        settings.rounds
    );
    text += &rates(&results.rates);
    let _ = write!(
        text,
        "\nThe engine also counts duplicates and writes the counts about two seconds later; here, where nearly every \
         replay is of\nanother key and so nothing is gathered, that takes another {:.0} ns of processor time a replay, \
         outside the windows.\n",
        results.counts_ns
    );
    text += "\n## Bytes a settled record\n\n";
    text += &footprints(&results.footprints);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\n## A new claim, in a store of {} records at most\n\nThrough the engine, one caller, rounds interleaved.\n\n",
        grouped(settings.bound)
    );
    text += &bound(&results.bound);
    text += "\n## Bars\n\n";
    text += &bars(&results.bars);
    text
}

fn rates(rates: &[Rate]) -> String {
    let heading = ["", "threads", "k/s", "(min to max)", "CPU ns", "× usual", "by CPU", "× lean", "by CPU"]
        .map(str::to_owned);
    let line = |rate: &Rate| {
        let work = match rate.work {
            Work::Cycles => "cycles",
            Work::Replays => "replays",
        };
        [
            format!("{}, {work}", rate.contestant),
            rate.threads.to_string(),
            thousands(rate.median),
            format!("({} to {})", thousands(rate.min), thousands(rate.max)),
            format!("{:.0}", rate.cpu_ns),
            format!("{:.2}", rate.times_map.rate),
            format!("{:.2}", rate.times_map.cpu),
            format!("{:.2}", rate.times_lean.rate),
            format!("{:.2}", rate.times_lean.cpu),
        ]
    };
    table(&heading, rates.iter().map(line))
}

fn footprints(footprints: &[Footprint]) -> String {
    let heading = ["", "allocated", "resident", "key and outcome", "beyond them"].map(str::to_owned);
    let line = |found: &Footprint| {
        [
            found.contestant.clone(),
            format!("{:.0}", found.allocated_bytes),
            format!("{:.0}", found.resident_bytes),
            format!("{:.0}", found.payload_bytes),
            format!("{:.0}", found.overhead_bytes()),
        ]
    };
    table(&heading, footprints.iter().map(line))
}

fn bound(cases: &[BoundCase]) -> String {
    let heading = ["", "p50 µs", "p99 µs", "p99 × half full"].map(str::to_owned);
    let line = |case: &BoundCase| {
        [
            case.name.to_owned(),
            format!("{:.2}", case.p50_us),
            format!("{:.2}", case.p99_us),
            format!("{:.2}", case.times_half),
        ]
    };
    table(&heading, cases.iter().map(line))
}

fn bars(bars: &[Bar]) -> String {
    let heading = ["", "wanted", "found", ""].map(str::to_owned);
    let line = |bar: &Bar| {
        let verdict = if bar.reached { "reached" } else { "NOT reached" };
        [bar.name.clone(), bar.wanted.clone(), bar.found.clone(), verdict.to_owned()]
    };
    table(&heading, bars.iter().map(line))
}

/// A markdown table that also lines up where it is not rendered: the first column to the left, numbers to the right.
fn table<const N: usize>(heading: &[String; N], lines: impl Iterator<Item = [String; N]>) -> String {
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

fn thousands(rate: f64) -> String {
    format!("{:.0}", rate / 1e3)
}

/// 1234567 as 1,234,567.
pub(super) fn grouped(number: u64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_and_keeps_its_columns() {
        let text = table(&["", "n"].map(str::to_owned), [["a".to_owned(), "1,000".to_owned()]].into_iter());
        assert_eq!(text, "|     |     n |\n|-----|------:|\n| a   | 1,000 |\n");
    }
}
