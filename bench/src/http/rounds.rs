//! Windows of every contestant, one right after the other, in every round; each with servers of its own.

use std::time::Duration;

use anyhow::{Result, ensure};
use indicatif::ProgressBar;

use super::entry::{Entry, Places, base, connections, entries};
use super::load::{Keys, Plan, Window, runs, window};
use super::results::Line;
use crate::args::{HttpPart, HttpSettings};
use crate::report::{Spread, median};

/// One window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) round: u64,
    pub(super) part: HttpPart,
    pub(super) name: &'static str,
    pub(super) keys: Keys,
    pub(super) window: Window,
}

/// All windows of a run.
#[derive(Debug, Default)]
pub(super) struct Samples(pub(super) Vec<Sample>);

/// How far the bar goes.
pub(super) fn steps(settings: &HttpSettings) -> u64 {
    let entries: usize = settings.parts().map(|part| wanted(settings, part).len()).sum();
    entries as u64 * settings.rounds
}

/// Who is to be measured in a part.
fn wanted(settings: &HttpSettings, part: HttpPart) -> Vec<&'static Entry> {
    let is_wanted = |entry: &&Entry| {
        let is_named = |line: &String| format!("{}, {}", entry.name, entry.keys.words()).contains(line);
        settings.line.as_ref().is_none_or(is_named) || (entry.name, entry.keys) == base(part)
    };
    entries(part).iter().filter(is_wanted).collect()
}

/// Measures all rounds.
pub(super) fn measure(settings: &HttpSettings, places: &Places, bar: &ProgressBar) -> Result<Samples> {
    let mut samples = Samples::default();
    let mut first = 0;
    for round in 0..settings.rounds {
        for part in settings.parts() {
            let entries = wanted(settings, part);
            // Another one starts each round: whoever comes first finds the machine in another state.
            let start = usize::try_from(round)? % entries.len();
            for entry in entries.iter().copied().cycle().skip(start).take(entries.len()) {
                let Entry { name, keys, .. } = *entry;
                bar.set_message(name);
                let window = measured(entry, places, |port, pid| Plan {
                    port,
                    pid,
                    connections: connections(part),
                    keys,
                    first,
                    span: Duration::from_millis(settings.window_ms),
                })?;
                first = window.next;
                samples.0.push(Sample { round, part, name, keys, window });
                bar.inc(1);
            }
        }
    }
    Ok(samples)
}

/// One window; the handler must have run as often as clients were told.
fn measured(entry: &Entry, places: &Places, plan: impl FnOnce(u16, u32) -> Plan) -> Result<Window> {
    let stage = entry.start(places)?;
    let window = window(plan(stage.front.port, stage.front.pid()));
    let window = window.map_err(|error| error.context(format!("{}, {}", entry.name, entry.keys.words())))?;
    let ran = runs(stage.handler_port())?;
    ensure!(ran == window.runs, "{}: {} runs were told, and there were {ran}", entry.name, window.runs);
    Ok(window)
}

impl Samples {
    /// One line for each contestant of a part.
    pub(super) fn lines(&self, part: HttpPart) -> Vec<Line> {
        entries(part).iter().filter_map(|entry| self.line(part, entry)).collect()
    }

    fn line(&self, part: HttpPart, entry: &Entry) -> Option<Line> {
        let who = (entry.name, entry.keys);
        let own = self.of(part, who);
        let of =
            |number: fn(&Window) -> f64| own.iter().map(|sample| number(&sample.window)).collect::<Vec<_>>();
        (!own.is_empty()).then(|| Line {
            part,
            contestant: entry.name,
            keys: entry.keys.words(),
            connections: connections(part),
            per_second: Spread::of(&of(|window| window.rate)),
            p50_us: median(&of(|window| window.p50_us)),
            p99_us: median(&of(|window| window.p99_us)),
            server_cpu_us: median(&of(|window| window.server_cpu_us)),
            client_cpu_us: median(&of(|window| window.client_cpu_us)),
            times_base: self.times(part, who, base(part), |window| window.rate),
            cpu_times_base: self.times(part, who, base(part), |window| window.server_cpu_us),
        })
    }

    /// How many times the other's number this one's is: the median of the rounds' own ratios. No number, if a round lacks one.
    pub(super) fn times(
        &self,
        part: HttpPart,
        one: (&str, Keys),
        other: (&str, Keys),
        number: fn(&Window) -> f64,
    ) -> f64 {
        let others = self.of(part, other);
        let ratios = self.of(part, one).into_iter().filter_map(|sample| {
            let other = others.iter().find(|other| other.round == sample.round)?;
            Some(number(&sample.window) / number(&other.window))
        });
        median(&ratios.collect::<Vec<_>>())
    }

    fn of(&self, part: HttpPart, who: (&str, Keys)) -> Vec<&Sample> {
        let is_it = |sample: &&Sample| (sample.part, (sample.name, sample.keys)) == (part, who);
        self.0.iter().filter(is_it).collect()
    }
}
