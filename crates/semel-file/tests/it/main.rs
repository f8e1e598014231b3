//! The embedded store, tested from outside: on folders, and on disks that tear, lose, lie and fail.
#![cfg(test)]
#![expect(
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm,
    reason = "what overflows, or is told what no test foresees, fails a test, as it should"
)]

mod conformance;
mod crash;
mod damaged;
mod dice;
mod disk;
mod faults;
mod flips;
mod folder_damage;
mod format_1;
mod hints;
mod injected_clock;
mod interleaved;
mod lapsed_hold;
mod one_opener;
mod scale;
mod sharing;
mod simulation;
mod sweeping;
mod sync;
mod tamper;
