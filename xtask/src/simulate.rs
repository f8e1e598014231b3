//! `cargo xtask simulate`: seeded histories through the simulator.

use anyhow::Result;

use crate::run::cargo;

/// Run seeded histories through the simulator; a failing seed is printed and fails again when it is rerun.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many seeds to run.
    #[arg(default_value_t = 1_000)]
    seeds: u64,
    /// Options for the simulator itself.
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let simulate = ["run", "--release", "--package", "semel-testkit", "--example", "simulate", "--"];
    let seeds = args.seeds.to_string();
    let rest = args.rest.iter().map(String::as_str);
    cargo(simulate.into_iter().chain([seeds.as_str()]).chain(rest)).show()
}
