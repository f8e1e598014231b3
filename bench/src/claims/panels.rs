//! Which numbers become which bars.

use super::entry::{CONNECTIONS, Entry, Store};
use super::results::{Line, Results};
use crate::report::svg::{Bar, Group, Panel, draw};

/// Told apart by lightness too, for those who do not see the hues.
const COLOURS: [(&str, &str); 3] =
    [("semel", "#1d5fa8"), ("bare JSON echo", "#8b98a5"), ("Redis", "#d4a72c")];

/// The chart of a run.
pub(super) fn chart(results: &Results) -> String {
    let rounds = results.settings.rounds;
    let note = format!(
        "{CONNECTIONS} connections, Redis {} on {}; median and range of {rounds} round{}",
        results.redis,
        results.facts.cpu,
        if rounds == 1 { "" } else { "s" }
    );
    let single = [Entry::Echo, Entry::Single(Store::Memory), Entry::Single(Store::File)];
    let batched = [Entry::Batched(Store::Memory), Entry::Batched(Store::File), Entry::Redis];
    let panels = [
        Panel {
            title: "Requests, one key each".to_owned(),
            axis: "requests per second: more is better".to_owned(),
            groups: groups(&results.lines, &single),
        },
        Panel {
            title: "Keys claimed and completed in batches of 100; SET NX".to_owned(),
            axis: "cycles per second: more is better; p99 is of a batch".to_owned(),
            groups: groups(&results.lines, &batched),
        },
    ];
    draw("The claim server, beside a bare echo and Redis", &note, &COLOURS, &panels)
}

fn groups(lines: &[Line], entries: &[Entry]) -> Vec<Group> {
    let group = |entry: &Entry| {
        let line = lines.iter().find(|line| line.contestant == entry.name())?;
        // Of a batch, what counts are keys.
        let times = entry.requests_per_cycle().max(1.0);
        let name = match entry {
            Entry::Echo => "bare JSON echo",
            Entry::Redis => "Redis",
            Entry::Single(_) | Entry::Batched(_) => "semel",
        };
        let spread = line.cycles_per_second;
        let bar = Bar {
            name: name.to_owned(),
            value: spread.median * times,
            low: spread.min * times,
            high: spread.max * times,
            label: format!("{:.0}  (p99 {:.1} ms)", spread.median * times, line.p99_us / 1e3),
        };
        Some(Group { label: entry.name().trim_start_matches("semel, ").to_owned(), bars: vec![bar] })
    };
    entries.iter().filter_map(group).collect()
}
