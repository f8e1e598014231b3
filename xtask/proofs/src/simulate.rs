//! `simulate`: seeded histories through the simulator, and flaws that it must find.

use anyhow::{Context, Result, ensure};
use semel_testkit::simulator::{Flaw, simulate};

/// How many seeds a flaw may hide from.
const CONTROL_SEEDS: u64 = 1_000;

/// Run seeded histories through the simulator; a failing seed is printed and fails again when it is rerun.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many seeds to run.
    #[arg(default_value_t = 1_000)]
    seeds: u64,
    /// The first of them.
    #[arg(default_value_t = 1)]
    first: u64,
}

/// Simulates them, and the flaws that must be found.
pub fn run(args: &Args) -> Result<()> {
    let Args { seeds, first } = *args;
    let mut sums = Sums::default();
    for seed in first..first.saturating_add(seeds) {
        let report =
            simulate(seed, Flaw::None).with_context(|| format!("seed {seed} could not be simulated"))?;
        if !report.violations.is_empty() {
            println!("{report}");
        }
        sums.add(&report);
        if (seed - first + 1).is_multiple_of(10_000) {
            println!("{} seeds so far, {} violations", seed - first + 1, sums.violations);
        }
    }
    println!(
        "{seeds} seeds: {} events, {} runs ({} writes beyond a first attempt), {} replays, {} crashes, {} lost, {} fenced off, {} violations",
        sums.events,
        sums.runs,
        sums.reruns,
        sums.replays,
        sums.crashes,
        sums.lost,
        sums.fenced_off,
        sums.violations
    );
    let controls = [Flaw::NoFencing, Flaw::CheckThenSet, Flaw::StaleIgnored].map(control);
    ensure!(sums.violations == 0, "{} violations", sums.violations);
    ensure!(controls.iter().all(|found| *found), "a flaw was not found");
    Ok(())
}

/// Whether a flaw is found within its seeds.
fn control(flaw: Flaw) -> bool {
    let found = (1..=CONTROL_SEEDS).find_map(|seed| {
        let report = simulate(seed, flaw).ok()?;
        Some((seed, report.violations.first()?.clone()))
    });
    match &found {
        Some((seed, violation)) => println!("control {flaw:?}: found at seed {seed}: {violation}"),
        None => println!("control {flaw:?}: NOT found in {CONTROL_SEEDS} seeds"),
    }
    found.is_some()
}

#[derive(Default)]
struct Sums {
    events: u64,
    runs: u64,
    reruns: u64,
    replays: u64,
    crashes: u64,
    lost: u64,
    fenced_off: u64,
    violations: usize,
}

impl Sums {
    fn add(&mut self, report: &semel_testkit::simulator::Report) {
        self.events += report.events;
        self.runs += report.runs;
        self.reruns += report.reruns;
        self.replays += report.replays;
        self.crashes += report.crashes;
        self.lost += report.lost;
        self.fenced_off += report.fenced_off;
        self.violations += report.violations.len();
    }
}
