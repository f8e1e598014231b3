//! Which numbers become which bars.

use super::results::{BoundCase, Footprint, Rate, Results, Work};
use super::rounds::{ENGINE, LEAN, MAP, STORE};
use crate::report::grouped;
use crate::report::svg::{Bar, Group, Panel, draw};

/// Told apart by lightness too, for those who do not see the hues.
const COLOURS: [(&str, &str); 4] =
    [(ENGINE, "#1d5fa8"), (STORE, "#5fa8d3"), (MAP, "#b8860b"), (LEAN, "#e0c068")];

/// The chart of a run.
pub(super) fn chart(results: &Results) -> String {
    let facts = &results.facts;
    let note = format!(
        "{} cores, {} · {} keys · median of {} interleaved rounds, whiskers from min to max",
        facts.cores,
        facts.cpu,
        grouped(results.settings.keys),
        results.settings.rounds
    );
    let panels = [
        rates("Cycles (claim and complete)", Work::Cycles, &results.rates),
        rates("Replays", Work::Replays, &results.rates),
        footprints(&results.footprints),
        bound(&results.bound),
    ];
    draw("semel in memory, beside a DashMap as usually written and a lean one", &note, &COLOURS, &panels)
}

fn rates(title: &str, work: Work, rates: &[Rate]) -> Panel {
    let mut groups: Vec<Group> = Vec::new();
    for rate in rates.iter().filter(|rate| rate.work == work) {
        let label = format!("{} thread{}", rate.threads, if rate.threads == 1 { "" } else { "s" });
        let bar = Bar {
            name: rate.contestant.to_owned(),
            value: rate.median / 1e3,
            low: rate.min / 1e3,
            high: rate.max / 1e3,
            label: format!(
                "{:.0}  ({:.1}×, {:.1}× lean)",
                rate.median / 1e3,
                rate.times_map.rate,
                rate.times_lean.rate
            ),
        };
        match groups.iter_mut().find(|group| group.label == label) {
            Some(group) => group.bars.push(bar),
            None => groups.push(Group { label, bars: vec![bar] }),
        }
    }
    Panel { title: title.to_owned(), axis: "thousands per second: more is better".to_owned(), groups }
}

fn footprints(footprints: &[Footprint]) -> Panel {
    let bar = |found: &Footprint| Bar::exact(&found.contestant, found.overhead_bytes());
    let bars = footprints.iter().map(bar).collect();
    Panel {
        title: "Memory of a settled record".to_owned(),
        axis: "bytes beyond key and outcome: less is better".to_owned(),
        groups: vec![Group { label: "1 record".to_owned(), bars }],
    }
}

fn bound(cases: &[BoundCase]) -> Panel {
    let group = |case: &BoundCase| Group {
        label: case.name.to_owned(),
        bars: vec![Bar { label: format!("{:.2}", case.p99_us), ..Bar::exact("engine", case.p99_us) }],
    };
    Panel {
        title: "A new claim, p99".to_owned(),
        axis: "microseconds: less is better".to_owned(),
        groups: cases.iter().map(group).collect(),
    }
}
