//! Simulates many seeds and says what came of them: `simulate SEEDS [FIRST]`.
#![expect(clippy::arithmetic_side_effects, reason = "sums of counts; one that overflows may end the program")]

use std::process::ExitCode;

use semel_testkit::simulator::{Flaw, simulate};

/// How many seeds a flaw may hide from.
const CONTROL_SEEDS: u64 = 1_000;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Ok(seeds), Ok(first)) = (numbers.next().unwrap_or(Ok(1_000)), numbers.next().unwrap_or(Ok(1)))
    else {
        eprintln!("usage: simulate SEEDS [FIRST]; both are whole numbers");
        return ExitCode::from(2);
    };
    let mut sums = Sums::default();
    for seed in first..first.saturating_add(seeds) {
        match simulate(seed, Flaw::None) {
            Ok(report) => {
                if !report.violations.is_empty() {
                    println!("{report}");
                }
                sums.add(&report);
            }
            Err(error) => {
                eprintln!("seed {seed} could not be simulated: {error}");
                return ExitCode::FAILURE;
            }
        }
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
    if sums.violations == 0 && controls.iter().all(|found| *found) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
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
