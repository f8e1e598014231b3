//! The tables that are printed and kept.

use std::fmt::Write;

use super::results::{BoundCase, Footprint, Rate, Results, Work};
use crate::inputs::{KEY_BYTES, Response};
use crate::report::{Facts, bars, grouped, table, thousands};

/// All numbers of a run, for people.
pub(super) fn markdown(results: &Results) -> String {
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
