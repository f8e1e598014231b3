//! Which numbers become which bars.

use super::results::{Expiry, Left, Opening, Rate, Results};
use super::rounds::CALLERS;
use super::who::Who;
use crate::report::grouped;
use crate::report::svg::{Bar, Group, Panel, draw};

/// Told apart by lightness too, for those who do not see the hues.
const COLOURS: [(&str, &str); 6] = [
    (Who::SemelFile.name(), "#1d5fa8"),
    (Who::SemelEngine.name(), "#5fa8d3"),
    (Who::Fjall.name(), "#8a5a00"),
    (Who::Redb.name(), "#b8860b"),
    (Who::Sqlite.name(), "#d4a72c"),
    (Who::SqlitePerCall.name(), "#ecd48f"),
];

/// The chart of a run.
pub(super) fn chart(results: &Results) -> String {
    let facts = &results.facts;
    let note = format!(
        "{} cores, {} · {} · {} keys · median of {} interleaved rounds, whiskers from min to max",
        facts.cores,
        facts.cpu,
        results.filesystem,
        grouped(results.settings.keys),
        results.settings.rounds
    );
    let mut panels = Vec::new();
    if let Some(found) = &results.throughput {
        panels.extend(CALLERS.map(|callers| rates(callers, &found.rates)));
    }
    if !results.openings.is_empty() {
        panels.push(openings(&results.openings));
        panels.push(memory(&results.openings));
    }
    if !results.expiries.is_empty() {
        panels.push(expiries(&results.expiries));
    }
    draw(
        "semel in a folder, beside fjall, redb and SQLite; every answer waits for fdatasync",
        &note,
        &COLOURS,
        &panels,
    )
}

fn rates(callers: usize, rates: &[Rate]) -> Panel {
    let bar = |rate: &Rate| Bar {
        name: rate.contestant.to_owned(),
        value: rate.cycles.median,
        low: rate.cycles.min,
        high: rate.cycles.max,
        label: format!("{:.0}  (p99 {:.1} ms)", rate.cycles.median, rate.claim_p99_us / 1e3),
    };
    let label = format!("{} caller{}", grouped(callers as u64), if callers == 1 { "" } else { "s" });
    let bars = rates.iter().filter(|rate| rate.callers == callers).map(bar).collect();
    Panel {
        title: format!("Cycles (claim and complete), {label}"),
        axis: "per second: more is better; p99 is of a claim".to_owned(),
        groups: vec![Group { label, bars }],
    }
}

fn openings(openings: &[Opening]) -> Panel {
    let group = |left: Left, label: &str| {
        let bars = openings.iter().filter(|opening| opening.left == left).map(|opening| Bar {
            name: opening.contestant.to_owned(),
            value: opening.seconds.median,
            low: opening.seconds.min,
            high: opening.seconds.max,
            label: format!("{:.2}  ({} keys)", opening.seconds.median, grouped(opening.keys)),
        });
        Group { label: label.to_owned(), bars: bars.collect() }
    };
    let groups = [group(Left::Clean, "clean stop"), group(Left::Killed, "kill -9")];
    Panel {
        title: "Opening, until the first answer".to_owned(),
        axis: "seconds: less is better".to_owned(),
        groups: groups.into_iter().filter(|group| !group.bars.is_empty()).collect(),
    }
}

fn memory(openings: &[Opening]) -> Panel {
    let bar = |opening: &Opening| Bar {
        label: format!("{:.0}  ({} keys)", opening.resident_bytes, grouped(opening.keys)),
        ..Bar::exact(opening.contestant, opening.resident_bytes)
    };
    let bars = openings.iter().filter(|opening| opening.left == Left::Clean).map(bar).collect();
    Panel {
        title: "Memory of an open store".to_owned(),
        axis: "resident bytes a key: less is better".to_owned(),
        groups: vec![Group { label: "1 key".to_owned(), bars }],
    }
}

fn expiries(expiries: &[Expiry]) -> Panel {
    let bar = |expiry: &Expiry| Bar {
        label: format!("{:.2}", expiry.swept.seconds),
        ..Bar::exact(expiry.contestant, expiry.swept.seconds)
    };
    Panel {
        title: "Removing all keys after their retention".to_owned(),
        axis: "seconds: less is better".to_owned(),
        groups: vec![Group { label: "all keys".to_owned(), bars: expiries.iter().map(bar).collect() }],
    }
}
