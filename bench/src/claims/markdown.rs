//! The tables that are printed and kept.

use super::entry::CONNECTIONS;
use super::results::{Line, Results};
use crate::report::{Facts, bars, grouped, table, whole};

/// All numbers of a run, for people.
pub(super) fn markdown(results: &Results) -> String {
    let Facts { cores, cpu, system } = &results.facts;
    let settings = &results.settings;
    let text = format!(
        "# The claim server, beside a bare echo and Redis\n\n\
         {cores} cores, {cpu}, {system}; Redis {}, files on {}. Servers and clients share these cores.\n\n\
         {CONNECTIONS} connections on one thread, each with one request at a time; every answer is checked. A *cycle* is a new key \
         claimed and completed with an outcome of about 80\nbytes: two requests, or two requests for a hundred of them. The echo is \
         axum with a small JSON object in and out. On the file store every answer waits for the\ndisk. Redis is asked by \
         `redis-benchmark -c {CONNECTIONS} -P 1` for `SET key:… NX`, with new random keys, and keeps nothing on a disk: a cycle of its \
         own would be two such\ncommands. Windows have {} ms, and a third as much before them to warm up; median (min to max) of {} \
         interleaved round{}. Ratios are medians of each round's own\nratio. Right before the first window, others took {:.0}% of the \
         machine.\n\n",
        results.redis,
        results.filesystem,
        grouped(settings.window_ms),
        settings.rounds,
        if settings.rounds == 1 { "" } else { "s" },
        results.neighbours_share * 100.0
    );
    let heading = [
        "",
        "cycles/s",
        "(min to max)",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "server CPU µs a cycle",
        "client CPU µs a cycle",
        "requests/s × echo",
        "cycles/s × Redis",
    ]
    .map(str::to_owned);
    text + &table(&heading, results.lines.iter().map(cells)) + "\n## Bars\n\n" + &bars(&results.bars)
}

fn cells(line: &Line) -> [String; 10] {
    [
        line.contestant.to_owned(),
        whole(line.cycles_per_second.median),
        format!("({} to {})", whole(line.cycles_per_second.min), whole(line.cycles_per_second.max)),
        whole(line.requests_per_second),
        format!("{:.2}", line.p50_us / 1e3),
        format!("{:.2}", line.p99_us / 1e3),
        line.server_cpu_us.map_or_else(String::new, |time| format!("{time:.1}")),
        format!("{:.1}", line.client_cpu_us),
        format!("{:.2}×", line.times_echo),
        format!("{:.2}×", line.times_redis),
    ]
}
