//! The tables that are printed and kept.

use std::fmt::Write;

use super::results::{Disk, Expiry, Growth, Left, Opening, Rate, Results, Throughput, bytes_a_further_key};
use super::who::Who;
use crate::report::{Facts, bars, grouped, table, whole};

const MIB: f64 = (1 << 20) as f64;

/// All numbers of a run, for people.
pub(super) fn markdown(results: &Results) -> String {
    let Facts { cores, cpu, system } = &results.facts;
    let mut text = format!(
        "# The durable store beside fjall, redb and SQLite\n\n{cores} cores, {cpu}, {system}; {}. Every answer waits \
         for fdatasync.\n",
        results.filesystem
    );
    if let Some(found) = &results.throughput {
        text += &throughput(found, results);
    }
    if !results.openings.is_empty() {
        text += "\n## Opening, and memory\n\nEach in a process of its own, with its files in the page cache, until the \
                 first claim is answered. Memory is what the process grew by, a key.\n\n";
        text += &openings(&results.openings);
        text += &further_keys(&results.openings);
    }
    if !results.expiries.is_empty() {
        text += "\n## Removing all keys after their retention\n\nIn durable batches of 1,024.\n\n";
        text += &expiries(&results.expiries);
    }
    if let Some(found) = &results.growth {
        text += &growth(found);
    }
    if let Some(found) = &results.disk {
        text += &disk(found);
    }
    text += "\n## Bars\n\n";
    text += &bars(&results.bars);
    text
}

fn throughput(found: &Throughput, results: &Results) -> String {
    let settings = &results.settings;
    let mut text = format!(
        "\n## Cycles per second\n\nA cycle is a claim and a complete of a new key; one in ten is followed by a duplicate \
         of an older key, which is handed its outcome. {} done keys are there\nbefore the first window, windows have {} \
         ms, median (min to max) of {} interleaved rounds; callers are tokio tasks on two threads. Ratios are medians of \
         each\nround's own ratio. The CPU time of a cycle has in it what was left for later.\n\n",
        grouped(settings.keys),
        settings.window_ms,
        settings.rounds
    );
    text += &rates(&found.rates);
    let raw = &found.raw;
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\nThe disk alone, 4 KiB and fdatasync: {} ({} to {}) per second where the blocks are there, {} ({} to {}) where \
         the file grows.\nThe kernel and other processes took {:.0}% of the machine meanwhile.\n",
        whole(raw.zeroed.median),
        whole(raw.zeroed.min),
        whole(raw.zeroed.max),
        whole(raw.growing.median),
        whole(raw.growing.min),
        whole(raw.growing.max),
        found.neighbours_share * 100.0
    );
    text
}

fn rates(rates: &[Rate]) -> String {
    let heading =
        ["", "callers", "cycles/s", "(min to max)", "claim p50 ms", "p99 ms", "CPU µs", "semel file is"]
            .map(str::to_owned);
    let line = |rate: &Rate| {
        [
            rate.contestant.to_owned(),
            grouped(rate.callers as u64),
            whole(rate.cycles.median),
            format!("({} to {})", whole(rate.cycles.min), whole(rate.cycles.max)),
            format!("{:.2}", rate.claim_p50_us / 1e3),
            format!("{:.2}", rate.claim_p99_us / 1e3),
            format!("{:.0}", rate.cpu_us),
            format!("{:.2}×", rate.store_times),
        ]
    };
    table(&heading, rates.iter().map(line))
}

fn openings(openings: &[Opening]) -> String {
    let heading = [
        "",
        "keys",
        "left by",
        "seconds",
        "(min to max)",
        "resident bytes",
        "anonymous",
        "allocated in Rust",
    ]
    .map(str::to_owned);
    let line = |opening: &Opening| {
        let left = match opening.left {
            Left::Clean => "a clean stop",
            Left::Killed => "kill -9",
        };
        [
            opening.contestant.to_owned(),
            grouped(opening.keys),
            left.to_owned(),
            format!("{:.3}", opening.seconds.median),
            format!("({:.3} to {:.3})", opening.seconds.min, opening.seconds.max),
            format!("{:.0}", opening.resident_bytes),
            format!("{:.0}", opening.anonymous_bytes),
            format!("{:.0}", opening.allocated_bytes),
        ]
    };
    table(&heading, openings.iter().map(line))
}

fn further_keys(openings: &[Opening]) -> String {
    let is_ours =
        |opening: &&Opening| opening.contestant == Who::SemelFile.name() && opening.left == Left::Clean;
    match bytes_a_further_key(openings.iter().filter(is_ours)) {
        Some(bytes) => format!("\nEach further key takes {bytes:.0} resident bytes of semel file.\n"),
        None => String::new(),
    }
}

fn expiries(expiries: &[Expiry]) -> String {
    let heading = ["", "keys", "seconds", "longest batch ms", "disk MiB before", "after"].map(str::to_owned);
    let line = |expiry: &Expiry| {
        [
            expiry.contestant.to_owned(),
            grouped(expiry.swept.removed),
            format!("{:.3}", expiry.swept.seconds),
            format!("{:.1}", expiry.swept.longest_ms),
            mebibytes(expiry.swept.disk_bytes_before),
            mebibytes(expiry.swept.disk_bytes_after),
        ]
    };
    table(&heading, expiries.iter().map(line))
}

fn growth(found: &Growth) -> String {
    let heading = ["semel file", "cycles/s", "(min to max)"].map(str::to_owned);
    let lines = [(found.small_keys, found.small), (found.large_keys, found.large)].map(|(keys, cycles)| {
        let spread = format!("({} to {})", whole(cycles.min), whole(cycles.max));
        [format!("{} keys", grouped(keys)), whole(cycles.median), spread]
    });
    format!(
        "\n## Growth\n\n{} callers, both stores open, windows in turn.\n\n{}",
        grouped(found.callers as u64),
        table(&heading, lines.into_iter())
    )
}

fn disk(found: &Disk) -> String {
    let heading = ["semel file", "live records", "live MiB", "disk MiB", "disk by live"].map(str::to_owned);
    let lines = found.samples.iter().enumerate().map(|(at, sample)| {
        let (live, disk) = (as_float(sample.live_bytes), as_float(sample.disk_bytes));
        [
            format!("look {}", at + 1),
            grouped(sample.live_records),
            mebibytes(sample.live_bytes),
            mebibytes(sample.disk_bytes),
            format!("{:.2}", disk / live),
        ]
    });
    format!(
        "\n## Disk in a steady state\n\n{} records came, and as many went as came. The first look is after half of \
         them.\n\n{}",
        grouped(found.written),
        table(&heading, lines)
    )
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.0}", as_float(bytes) / MIB)
}

#[expect(clippy::cast_precision_loss, reason = "bytes are read to three digits")]
fn as_float(bytes: u64) -> f64 {
    bytes as f64
}
