//! The tests of the file store on a simulated disk, as often as somebody asks for.

use anyhow::Result;

use xtask::run::{Run, cargo};

/// Random cuts, cuts during recovery, and whole worlds.
pub(super) fn cuts(cuts: u64) -> Result<()> {
    tests(&["crash::", "simulation::"])
        .env("SEMEL_CUTS", cuts.to_string())
        .env("SEMEL_RECOVERIES", (cuts / 10).to_string())
        .env("SEMEL_SEEDS", (cuts / 10).to_string())
        .show()
}

/// Flipped bytes of a log of 1 MiB.
pub(super) fn flips(every: u64) -> Result<()> {
    tests(&["flips::"]).env("SEMEL_FLIPS", every.to_string()).show()
}

/// One test after the other, because each takes both cores for itself; and with what they print.
fn tests(named: &[&str]) -> Run {
    let line = ["test", "--release", "--package", "semel-file", "--test", "it", "--"];
    cargo(line.iter().chain(named).chain(&["--test-threads", "1", "--nocapture"]))
}
