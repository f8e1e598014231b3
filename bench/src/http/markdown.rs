//! The tables that are printed and kept.

use std::fmt::Write;

use super::load::REPLAYED_KEYS;
use super::results::{Line, Results};
use super::wire::CALLERS;
use crate::args::HttpPart;
use crate::report::{Facts, bars, grouped, table, whole};

const LAYER: &str = "\n## Layers around a handler\n\n\
    The handler takes an order in JSON and answers 201 with about 200 bytes of JSON. semel's layer has everything on, as it is by \
    default. axum-idempotent 0.6.0\nis in its quicker mode, on its store in memory (moka); it reads no body, compares no \
    requests, and lets two at once both run. cratestack-axum 0.8.15 has no store\nin memory: it is on Redis (appendfsync everysec), \
    the quicker of the two that are published for it, whose own processor time is not counted here, and on a map\nthat is \
    written here for it.\n\n";
const PROXY: &str = "\n## Proxies before the handler\n\n\
    nginx has 2 workers, connections to the handler that stay open, and no access log unless said. `semel proxy` is the real \
    program. Processor time is the proxy's\nalone; the handler behind it takes the same from the same cores for all.\n\n";

/// All numbers of a run, for people.
pub(super) fn markdown(results: &Results) -> String {
    let Facts { cores, cpu, system } = &results.facts;
    let settings = &results.settings;
    let mut text = format!(
        "# semel over HTTP, beside a bare handler, other layers, and nginx\n\n\
         {cores} cores, {cpu}, {system}; nginx {}, Redis {}, files on {}. Servers and clients share these cores.\n\n\
         Clients are connections that send one request after the other, all on one thread; every answer is checked, byte for \
         byte, and at the end how often the handler ran.\nReplays are of {} keys; there are {} callers. Every window of {} ms \
         has processes of its own and a third as much to warm up; median (min to max) of {}\ninterleaved round{}. Ratios are \
         medians of each round's own ratio. Right before the first window, others took {:.0}% of the machine.\n",
        results.nginx,
        results.redis,
        results.filesystem,
        grouped(REPLAYED_KEYS),
        grouped(CALLERS),
        settings.window_ms,
        settings.rounds,
        if settings.rounds == 1 { "" } else { "s" },
        results.neighbours_share * 100.0
    );
    for part in settings.parts() {
        let (about, base) = match part {
            HttpPart::Layer => (LAYER, "× bare"),
            HttpPart::Proxy => (PROXY, "× nginx"),
        };
        text += about;
        text += &lines(results.lines.iter().filter(|line| line.part == part), base);
    }
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## Bars\n\n{}", bars(&results.bars));
    text
}

fn lines<'a>(lines: impl Iterator<Item = &'a Line>, base: &str) -> String {
    let heading = [
        "",
        "requests",
        "connections",
        "per second",
        "(min to max)",
        "p50 ms",
        "p99 ms",
        "server CPU µs",
        "client CPU µs",
        base,
        "CPU",
    ]
    .map(str::to_owned);
    let line = |line: &Line| {
        [
            line.contestant.to_owned(),
            line.keys.to_owned(),
            grouped(line.connections as u64),
            whole(line.per_second.median),
            format!("({} to {})", whole(line.per_second.min), whole(line.per_second.max)),
            format!("{:.2}", line.p50_us / 1e3),
            format!("{:.2}", line.p99_us / 1e3),
            format!("{:.1}", line.server_cpu_us),
            format!("{:.1}", line.client_cpu_us),
            format!("{:.2}×", line.times_base),
            format!("{:.2}×", line.cpu_times_base),
        ]
    };
    table(&heading, lines.map(line))
}
