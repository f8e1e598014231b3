//! The simulator: no violation in any world, the same world from the same seed, and every flaw found.

use semel_testkit::simulator::{Flaw, simulate};

const SEEDS: u64 = 1_000;

#[test]
fn a_thousand_worlds_hold_every_promise() {
    let (mut runs, mut replays, mut crashes, mut lost, mut fenced_off) = (0, 0, 0, 0, 0);
    for seed in 1..=SEEDS {
        let report = simulate(seed, Flaw::None).unwrap();
        assert!(report.violations.is_empty(), "{report}");
        runs += report.runs;
        replays += report.replays;
        crashes += report.crashes;
        lost += report.lost;
        fenced_off += report.fenced_off;
    }
    println!(
        "{SEEDS} seeds: {runs} runs, {replays} replays, {crashes} crashes, {lost} lost, {fenced_off} fenced off"
    );
    // Worlds in which nothing goes wrong would prove nothing.
    assert!(runs > 1_000 && replays > 1_000 && crashes > 100 && lost > 100 && fenced_off > 50);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    for seed in 1..=50 {
        let first = simulate(seed, Flaw::None).unwrap();
        assert_eq!(first, simulate(seed, Flaw::None).unwrap());
        assert_ne!(first.trace_hash, simulate(seed + 1, Flaw::None).unwrap().trace_hash);
    }
}

fn found_within_a_thousand_seeds(flaw: Flaw, what: &str) {
    let found = (1..=SEEDS).find(|seed| {
        let report = simulate(*seed, flaw).unwrap();
        report.violations.iter().any(|violation| violation.contains(what))
    });
    println!("{flaw:?} was found at seed {found:?}");
    assert!(found.is_some());
}

#[test]
fn without_fencing_an_older_run_is_seen_to_write_after_a_newer_one() {
    found_within_a_thousand_seeds(Flaw::NoFencing, "an older run wrote after a newer one");
}

#[test]
fn a_swap_that_checks_and_then_sets_is_found_out() {
    found_within_a_thousand_seeds(Flaw::CheckThenSet, "two holds of one key overlap");
}

#[test]
fn a_stale_answer_that_is_ignored_is_found_out() {
    found_within_a_thousand_seeds(Flaw::StaleIgnored, "the store never granted it");
}
