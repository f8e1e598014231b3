//! The tables that are printed and kept.

use std::fmt::Write;

use super::results::{Counted, Rate, Results, Work};
use crate::report::{Facts, bars, grouped, table, whole};

/// What a run says about itself beside its numbers.
pub(super) struct Words {
    pub(super) title: &'static str,
    /// Who is measured, and how the servers are set.
    pub(super) about: &'static str,
}

/// All numbers of a run, for people.
pub(super) fn markdown(words: &Words, results: &Results) -> String {
    let Facts { cores, cpu, system } = &results.facts;
    let settings = &results.settings;
    let mut text = format!(
        "# {}\n\n{cores} cores, {cpu}, {system}; {}, its data on {}. The server and all callers share these cores.\n\n{}\n",
        words.title, results.server, results.filesystem, words.about
    );
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\nA cycle is a claim and a complete of a new key with an outcome of 150 bytes; one in ten is followed by a \
         duplicate of an older key, which is handed its\noutcome. A replay is a claim of a key that is done. {} done keys \
         are there before the first window; windows have {} ms; median (min to max) of {}\ninterleaved round{}; callers are \
         tokio tasks on two threads. Ratios are medians of each round's own ratio. semel keeps no replays in memory here.\n\
         \"With later work\" is over all of the time, until also what was left for later is done: semel counts duplicates \
         and writes the counts in batches; here\nnearly every one is of another key, which is the worst case. The CPU time \
         is that of the process of the callers alone, with later work.\nRight before the first window, others took {:.0}% \
         of the machine.\n",
        grouped(settings.keys),
        settings.window_ms,
        settings.rounds,
        if settings.rounds == 1 { "" } else { "s" },
        results.neighbours_share * 100.0
    );
    text += "\n## Cycles\n\n";
    text += &rates(&results.rates, "cycles/s", |rate| &rate.cycles);
    text += "\n## Replays\n\n";
    text += &rates(&results.rates, "replays/s", |rate| &rate.replays);
    text += "\n## What was done\n\nCounted on the server at the end, and the same as callers were told: every key is done and \
             ran once, every duplicate was a replay.\n\n";
    text += &counted(&results.counted);
    text += "\n## Bars\n\n";
    text += &bars(&results.bars);
    text
}

fn rates(rates: &[Rate], unit: &str, work: fn(&Rate) -> &Work) -> String {
    let heading = [
        "",
        "callers",
        unit,
        "(min to max)",
        "with later work",
        "claim p50 ms",
        "p99 ms",
        "client CPU µs",
        "semel is",
        "with later work",
        "semel's CPU is",
    ]
    .map(str::to_owned);
    let line = |rate: &Rate| {
        let work = work(rate);
        [
            named(rate.contestant, rate.setting),
            grouped(rate.callers as u64),
            whole(work.per_second.median),
            format!("({} to {})", whole(work.per_second.min), whole(work.per_second.max)),
            whole(work.sustained),
            format!("{:.2}", work.claim_p50_us / 1e3),
            format!("{:.2}", work.claim_p99_us / 1e3),
            format!("{:.0}", work.cpu_us),
            format!("{:.2}×", work.semel_times),
            format!("{:.2}×", work.semel_sustained_times),
            format!("{:.2}×", work.semel_cpu_times),
        ]
    };
    table(&heading, rates.iter().map(line))
}

fn counted(counted: &[Counted]) -> String {
    let heading = ["", "keys loaded", "keys run", "replays"].map(str::to_owned);
    let line = |counted: &Counted| {
        [
            named(counted.contestant, counted.setting),
            grouped(counted.loaded),
            grouped(counted.ran),
            grouped(counted.replayed),
        ]
    };
    table(&heading, counted.iter().map(line))
}

fn named(contestant: &str, setting: &str) -> String {
    if setting.is_empty() { contestant.to_owned() } else { format!("{contestant}; {setting}") }
}
