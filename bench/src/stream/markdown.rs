//! The tables that are printed and kept.

use std::fmt::Write;

use super::results::{Line, Results, Work};
use super::window::EVENTS_MAX;
use crate::report::{Facts, bars, grouped, table, whole};

/// All numbers of a run, for people.
pub(super) fn markdown(results: &Results) -> String {
    let Facts { cores, cpu, system } = &results.facts;
    let settings = &results.settings;
    let mut text = format!(
        "# Events through a pipeline, by store and by batch\n\n\
         {cores} cores, {cpu}, {system}; {}, files on {}. Servers and pipeline share these cores.\n\n\
         One pipeline reads one stream alone, batch after batch, with `Pipeline::process` and a handler that does nothing. New events \
         are claimed, handled and completed;\nthen the offset is committed, once a batch. Duplicates have a receipt, and are told \
         so. Payloads have 150 bytes; making them is not measured. {} events\nhave receipts before the first window; windows have {} \
         ms or {} events, and a fifth as much before them to warm up; median (min to max) of {}\ninterleaved round{}. Ratios are \
         medians of each round's own ratio. No replays are kept in memory here. New events of the memory store go into a\nstore of \
         their own in each window. Each answer was checked; at the end all {} receipts were looked up, and the offsets.\nRight before \
         the first window, others took {:.0}% of the machine.\n",
        results.servers,
        results.filesystem,
        grouped(settings.events),
        grouped(settings.window_ms),
        grouped(EVENTS_MAX),
        settings.rounds,
        if settings.rounds == 1 { "" } else { "s" },
        grouped(results.receipts),
        results.neighbours_share * 100.0
    );
    text += "\n## New events\n\n";
    text += &new(&results.lines);
    text += "\n## Duplicates\n\n";
    text += &duplicates(&results.lines);
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## Bars\n\n{}", bars(&results.bars));
    text
}

fn new(lines: &[Line]) -> String {
    let heading = [
        "",
        "batch",
        "events/s",
        "(min to max)",
        "batch p50 ms",
        "p99 ms",
        "CPU µs an event",
        "× batches of 1",
    ]
    .map(str::to_owned);
    table(&heading, lines.iter().map(|line| cells(line, &line.new)))
}

fn duplicates(lines: &[Line]) -> String {
    let heading = [
        "",
        "batch",
        "events/s",
        "(min to max)",
        "batch p50 ms",
        "p99 ms",
        "CPU µs an event",
        "× batches of 1",
        "× new events",
    ]
    .map(str::to_owned);
    let line = |line: &Line| {
        let [store, batch, rate, spread, p50, p99, cpu, single] = cells(line, &line.duplicates);
        let new = format!("{:.1}×", line.duplicates_times_new);
        [store, batch, rate, spread, p50, p99, cpu, single, new]
    };
    table(&heading, lines.iter().map(line))
}

fn cells(line: &Line, work: &Work) -> [String; 8] {
    [
        line.store.to_owned(),
        grouped(line.batch),
        whole(work.per_second.median),
        format!("({} to {})", whole(work.per_second.min), whole(work.per_second.max)),
        format!("{:.3}", work.batch_p50_us / 1e3),
        format!("{:.3}", work.batch_p99_us / 1e3),
        format!("{:.1}", work.cpu_us),
        format!("{:.1}×", work.times_single),
    ]
}
