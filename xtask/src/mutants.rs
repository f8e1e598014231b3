//! `cargo xtask mutants`: breaks the rules one by one and looks whether a test notices.

use anyhow::{Result, ensure};

use xtask::needs;
use xtask::run::cargo;

/// What must not survive being broken: the rules, and the bytes that records are kept as.
const FILES: [&str; 2] = ["crates/semel/src/machine/*.rs", "crates/semel/src/codec/*.rs"];

/// Break each rule of the machine and the codec in turn, and fail if no test notices.
///
/// Installs cargo-mutants when it is missing. What was missed is listed in mutants.out/missed.txt.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Options for cargo-mutants itself, such as `-- --shard 0/4`.
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    ensure!(needs::cargo_tool("mutants"), "cargo-mutants is needed: cargo install cargo-mutants --locked");
    let tool = if needs::cargo_tool("nextest") { "nextest" } else { "cargo" };
    let mut line = vec!["mutants", "--package", "semel", "--test-package", "semel", "--test-tool", tool];
    line.extend(FILES.iter().flat_map(|file| ["--file", file]));
    line.extend(args.rest.iter().map(String::as_str));
    if tool == "nextest" {
        // These tests alone must notice; the slow ones would only make the same point later.
        line.extend(["--", "-E", "test(machine::) + test(codec::)"]);
    }
    cargo(line).show()
}
