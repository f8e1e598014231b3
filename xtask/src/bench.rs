//! `cargo xtask bench`: side-by-side measurements, from the workspace in `bench/`.

use anyhow::Result;
use clap::Subcommand;

use crate::run::cargo;

/// Measure against what projects write themselves, on this machine.
///
/// Prints a table and writes it to bench/results, with a chart and the numbers as JSON. Close everything else
/// first: a neighbour on a core shows in the result.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The engine and the memory store, beside a plain `DashMap`.
    Memory {
        /// Options for the measurement itself; `-- --help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let What::Memory { rest } = &args.what;
    let line = ["run", "--release", "--manifest-path", "bench/Cargo.toml", "--", "memory"];
    cargo(line.into_iter().chain(rest.iter().map(String::as_str))).show()
}
