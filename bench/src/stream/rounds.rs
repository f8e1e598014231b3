//! Windows of every store, batch and kind, one right after the other, in every round.

use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;
use tokio::runtime::Runtime;

use super::place::{Entry, Place};
use super::results::{Line, Work};
use super::window::{Kind, Plan, Window};
use crate::args::StreamSettings;
use crate::report::{Spread, median};
use crate::window::until_quiet;

/// How many events go through at a time.
pub(super) const BATCHES: [u64; 3] = [1, 100, 1_000];
/// Threads that the pipelines run on; servers have processes of their own.
pub(super) const THREADS: usize = 2;

/// One window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) round: u64,
    pub(super) place: Place,
    pub(super) batch: u64,
    pub(super) kind: Kind,
    pub(super) window: Window,
}

/// All windows of a run.
#[derive(Debug, Default)]
pub(super) struct Samples(pub(super) Vec<Sample>);

/// What one kind of windows did.
pub(super) type Whose = (Place, u64, Kind);

/// How far the bar goes.
pub(super) fn steps(settings: &StreamSettings) -> u64 {
    (Place::ALL.len() * BATCHES.len() * 2) as u64 * settings.rounds
}

/// Measures all rounds.
pub(super) fn measure(
    entries: &mut [Entry],
    settings: &StreamSettings,
    runtime: &Runtime,
    bar: &ProgressBar,
) -> Result<Samples> {
    let span = Duration::from_millis(settings.window_ms);
    let mut samples = Samples::default();
    for round in 0..settings.rounds {
        for batch in BATCHES {
            for kind in [Kind::New, Kind::Duplicates] {
                // Another one starts each round: whoever comes first finds the machine in another state.
                let first = usize::try_from(round)? % entries.len();
                for turn in 0..entries.len() {
                    let at = (first + turn) % entries.len();
                    let Some(entry) = entries.get_mut(at) else { continue };
                    let place = entry.place;
                    bar.set_message(format!("{}, batches of {batch}", place.name()));
                    let window = entry.window(runtime, Plan { batch, kind, span })?;
                    samples.0.push(Sample { round, place, batch, kind, window });
                    bar.inc(1);
                    until_quiet();
                }
            }
        }
    }
    Ok(samples)
}

impl Samples {
    /// One line for each store and batch.
    pub(super) fn lines(&self) -> Vec<Line> {
        let of_place = |place| BATCHES.map(|batch| self.line(place, batch));
        Place::ALL.into_iter().flat_map(of_place).collect()
    }

    fn line(&self, place: Place, batch: u64) -> Line {
        Line {
            store: place.name(),
            batch,
            new: self.work((place, batch, Kind::New)),
            duplicates: self.work((place, batch, Kind::Duplicates)),
            duplicates_times_new: self.times((place, batch, Kind::Duplicates), (place, batch, Kind::New)),
        }
    }

    fn work(&self, whose: Whose) -> Work {
        let (place, _, kind) = whose;
        let own = self.of(whose);
        let of =
            |number: fn(&Window) -> f64| own.iter().map(|sample| number(&sample.window)).collect::<Vec<_>>();
        Work {
            per_second: Spread::of(&of(|window| window.rate)),
            batch_p50_us: median(&of(|window| window.batch_p50_us)),
            batch_p99_us: median(&of(|window| window.batch_p99_us)),
            cpu_us: median(&of(|window| window.cpu_us)),
            times_single: self.times(whose, (place, 1, kind)),
        }
    }

    /// How many times the other's rate this one's is: the median of the rounds' own ratios. No number, if nothing was measured.
    pub(super) fn times(&self, one: Whose, other: Whose) -> f64 {
        let others = self.of(other);
        let ratios = self.of(one).into_iter().filter_map(|sample| {
            let other = others.iter().find(|other| other.round == sample.round)?;
            Some(sample.window.rate / other.window.rate)
        });
        median(&ratios.collect::<Vec<_>>())
    }

    fn of(&self, whose: Whose) -> Vec<&Sample> {
        self.0.iter().filter(|sample| (sample.place, sample.batch, sample.kind) == whose).collect()
    }
}
