//! Windows of every contestant, one right after the other, in every round; each with a server of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use test_services::Redis;

use super::entry::Entry;
use super::load::{Plan, Window, window};
use super::redis;
use super::results::Line;
use crate::args::ClaimsSettings;
use crate::file::TempFolder;
use crate::report::{Spread, median};

/// One window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) round: u64,
    pub(super) entry: Entry,
    pub(super) window: Window,
}

/// All windows of a run.
#[derive(Debug, Default)]
pub(super) struct Samples(pub(super) Vec<Sample>);

/// Where things are that outlive a window.
pub(super) struct Places<'a> {
    pub(super) folder: &'a TempFolder,
    pub(super) redis: &'a Redis,
    pub(super) semel: &'a Path,
}

/// How far the bar goes.
pub(super) fn steps(settings: &ClaimsSettings) -> u64 {
    Entry::ALL.len() as u64 * settings.rounds
}

/// Measures all rounds.
pub(super) fn measure(settings: &ClaimsSettings, places: &Places, bar: &ProgressBar) -> Result<Samples> {
    let mut samples = Samples::default();
    for round in 0..settings.rounds {
        // Another one starts each round: whoever comes first finds the machine in another state.
        let start = usize::try_from(round)? % Entry::ALL.len();
        for entry in Entry::ALL.into_iter().cycle().skip(start).take(Entry::ALL.len()) {
            bar.set_message(entry.name());
            let window = one(settings, places, entry).with_context(|| entry.name())?;
            samples.0.push(Sample { round, entry, window });
            bar.inc(1);
        }
    }
    Ok(samples)
}

fn one(settings: &ClaimsSettings, places: &Places, entry: Entry) -> Result<Window> {
    match entry.start(places.semel, places.folder)? {
        None => redis::window(places.redis, settings.window_ms),
        Some(server) => {
            let span = Duration::from_millis(settings.window_ms);
            window(Plan { entry, port: server.port, pid: server.pid(), span })
        }
    }
}

impl Samples {
    /// One line for each contestant.
    pub(super) fn lines(&self) -> Vec<Line> {
        Entry::ALL.into_iter().map(|entry| self.line(entry)).collect()
    }

    fn line(&self, entry: Entry) -> Line {
        let own = self.of(entry);
        let of =
            |number: fn(&Window) -> f64| own.iter().map(|sample| number(&sample.window)).collect::<Vec<_>>();
        let cycles = Spread::of(&of(|window| window.cycles));
        Line {
            contestant: entry.name(),
            cycles_per_second: cycles,
            requests_per_second: cycles.median * entry.requests_per_cycle(),
            p50_us: median(&of(|window| window.p50_us)),
            p99_us: median(&of(|window| window.p99_us)),
            server_cpu_us: Some(median(&of(|window| window.server_cpu_us))).filter(|time| time.is_finite()),
            client_cpu_us: median(&of(|window| window.client_cpu_us)),
            times_echo: self.times(entry, Entry::Echo) * entry.requests_per_cycle(),
            times_redis: self.times(entry, Entry::Redis),
        }
    }

    /// How many times the other's cycles per second: the median of the rounds' own ratios. No number, if a round lacks one.
    pub(super) fn times(&self, one: Entry, other: Entry) -> f64 {
        let others = self.of(other);
        let ratios = self.of(one).into_iter().filter_map(|sample| {
            let other = others.iter().find(|other| other.round == sample.round)?;
            Some(sample.window.cycles / other.window.cycles)
        });
        median(&ratios.collect::<Vec<_>>())
    }

    fn of(&self, entry: Entry) -> Vec<&Sample> {
        self.0.iter().filter(|sample| sample.entry == entry).collect()
    }
}
