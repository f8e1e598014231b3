//! No rule is forgotten: each has a test of its name, and each test is tried on both sides.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::{
    callers, concurrency, coverage, cratestack, death, durable, failure, header, isolation, logs, memory,
    mismatch, probes, profiles, replay, unkept, unknown, wire,
};

/// The rules by number.
const RULES: [RangeInclusive<u32>; 8] =
    [1..=8, 10..=12, 20..=26, 30..=34, 40..=42, 50..=57, 59..=59, 60..=65];

/// The names of all tests, each of which is there for the layer and for the proxy.
fn names() -> Vec<&'static str> {
    let all = [
        header::NAMES,
        coverage::NAMES,
        replay::NAMES,
        durable::NAMES,
        mismatch::NAMES,
        concurrency::NAMES,
        failure::NAMES,
        death::NAMES,
        unkept::NAMES,
        probes::NAMES,
        unknown::NAMES,
        memory::NAMES,
        callers::NAMES,
        isolation::NAMES,
        wire::NAMES,
        logs::NAMES,
        profiles::NAMES,
        cratestack::NAMES,
    ];
    all.concat()
}

/// Which rules none of these tests is named after.
fn without_a_test(names: &[&str]) -> Vec<u32> {
    let numbered = |name: &&str| name.strip_prefix('h')?.get(..2)?.parse().ok();
    let tested: BTreeSet<u32> = names.iter().filter_map(numbered).collect();
    RULES.into_iter().flatten().filter(|rule| !tested.contains(rule)).collect()
}

#[test]
fn every_rule_has_a_test_on_both_sides() {
    assert_eq!(without_a_test(&names()), [0; 0]);
    // Control: a rule whose tests are gone is missed.
    let without_h24: Vec<_> = names().into_iter().filter(|name| !name.starts_with("h24_")).collect();
    assert_eq!(without_a_test(&without_h24), [24]);
}

#[test]
fn no_two_tests_have_one_name() {
    let names = names();
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
}
