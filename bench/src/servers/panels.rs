//! Which numbers become which bars.

use super::entry::SEMEL;
use super::markdown::Words;
use super::results::{Rate, Results, Work};
use super::rounds::CALLERS;
use crate::report::grouped;
use crate::report::svg::{Bar, Group, Panel, draw};

/// Told apart by lightness too, for those who do not see the hues.
const COLOURS: [(&str, &str); 4] = [
    (SEMEL, "#1d5fa8"),
    ("per call, pool of 32", "#b8860b"),
    ("cratestack-sqlx", "#ecd48f"),
    ("SET NX, GET, SET", "#d4a72c"),
];

/// The chart of a run.
pub(super) fn chart(words: &Words, results: &Results) -> String {
    let note = format!(
        "{}, {} on {}; {} keys loaded; median and range of {} round{}",
        results.server,
        results.facts.cpu,
        results.filesystem,
        grouped(results.settings.keys),
        results.settings.rounds,
        if results.settings.rounds == 1 { "" } else { "s" }
    );
    let most = CALLERS.into_iter().max().unwrap_or(1);
    let mut panels: Vec<Panel> = CALLERS.into_iter().map(|callers| cycles(&results.rates, callers)).collect();
    panels.push(replays(&results.rates, most));
    panels.push(cpu(&results.rates, most));
    draw(words.title, &note, &COLOURS, &panels)
}

fn cycles(rates: &[Rate], callers: usize) -> Panel {
    Panel {
        title: format!("Cycles (claim and complete), {}", label(callers)),
        axis: "per second: more is better; p99 is of a claim".to_owned(),
        groups: groups(rates, callers, |rate| speed(rate, &rate.cycles)),
    }
}

fn replays(rates: &[Rate], callers: usize) -> Panel {
    Panel {
        title: format!("Replays, {}", label(callers)),
        axis: "per second: more is better; p99 is of a claim".to_owned(),
        groups: groups(rates, callers, |rate| speed(rate, &rate.replays)),
    }
}

fn cpu(rates: &[Rate], callers: usize) -> Panel {
    Panel {
        title: format!("CPU time of a cycle on the callers' side, {}", label(callers)),
        axis: "microseconds: less is better".to_owned(),
        groups: groups(rates, callers, |rate| Bar::exact(rate.contestant, rate.cycles.cpu_us)),
    }
}

fn speed(rate: &Rate, work: &Work) -> Bar {
    Bar {
        name: rate.contestant.to_owned(),
        value: work.per_second.median,
        low: work.per_second.min,
        high: work.per_second.max,
        label: format!("{:.0}  (p99 {:.1} ms)", work.per_second.median, work.claim_p99_us / 1e3),
    }
}

/// One group for each way that the servers are set.
fn groups(rates: &[Rate], callers: usize, bar: impl Fn(&Rate) -> Bar) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for rate in rates.iter().filter(|rate| rate.callers == callers) {
        match groups.last_mut().filter(|group| group.label == rate.setting) {
            Some(group) => group.bars.push(bar(rate)),
            None => groups.push(Group { label: rate.setting.to_owned(), bars: vec![bar(rate)] }),
        }
    }
    groups
}

fn label(callers: usize) -> String {
    format!("{} caller{}", grouped(callers as u64), if callers == 1 { "" } else { "s" })
}
