//! Whole worlds of processes and bad networks, over a machine that loses its power.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use semel_testkit::simulator::{Flaw, Report, simulate_on};

use super::rebooting::Rebooting;
use crate::disk::Syncs;
use crate::scale::{failures, from_env};

/// How many worlds, unless `SEMEL_SEEDS` says.
const SEEDS: u64 = 300;
/// How many worlds a disk that lies may hide in.
const CONTROL_SEEDS: u64 = 200;

/// What came of one world, and how often the power went in it.
fn world(seed: u64, syncs: Syncs) -> (Report, u64) {
    let mut machine = None;
    let mut report = simulate_on(seed, Flaw::None, |clock, seed| {
        let (store, handle) = Rebooting::new(clock, seed, syncs);
        machine = Some(handle);
        std::sync::Arc::new(store)
    })
    .unwrap();
    let machine = machine.unwrap();
    let machine = machine.lock().unwrap_or_else(PoisonError::into_inner);
    report.violations.extend(machine.refused.clone());
    (report, machine.cuts)
}

#[test]
fn no_world_breaks_a_promise_when_the_power_goes() {
    let seeds = from_env("SEMEL_SEEDS", SEEDS);
    let (cuts, runs) = (AtomicU64::new(0), AtomicU64::new(0));
    let failures = failures(seeds, |seed| {
        let (report, cut) = world(seed, Syncs::Honest);
        cuts.fetch_add(cut, Ordering::Relaxed);
        runs.fetch_add(report.runs, Ordering::Relaxed);
        if report.violations.is_empty() { Ok(()) } else { Err(report.to_string()) }
    });
    println!("{seeds} seeds, {cuts:?} cuts, {runs:?} runs, {} failures", failures.len());
    assert!(failures.is_empty(), "{failures:#?}");
    // Worlds in which the power stays on would prove nothing.
    assert!(cuts.into_inner() > seeds && runs.into_inner() > seeds);
}

#[test]
fn the_same_seed_gives_the_same_world() {
    for seed in 0..20 {
        assert_eq!(world(seed, Syncs::Honest), world(seed, Syncs::Honest));
    }
    assert_ne!(world(1, Syncs::Honest).0.trace_hash, world(2, Syncs::Honest).0.trace_hash);
}

#[test]
fn a_world_on_a_disk_that_lies_breaks_promises() {
    let found = (0..CONTROL_SEEDS)
        .map(|seed| world(seed, Syncs::Lying).0)
        .find(|report| !report.violations.is_empty());
    println!("{}", found.as_ref().map_or("nothing was found".to_owned(), Report::to_string));
    assert!(found.is_some());
}
