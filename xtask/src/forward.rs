//! Commands that the package `proofs` carries out: it is built, and gets the arguments as they are.

use anyhow::Result;
use xtask::run::{built, cargo, program};

/// Arguments that are handed on; `--help` lists them.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// How the package is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// With the features and dependencies that the tests are built with: little is left to build after them.
    Dev,
    /// What is measured, or does a lot, is worth its build.
    Release,
}

pub(crate) fn run(command: &str, args: &Args, profile: Profile) -> Result<()> {
    let folder = match profile {
        Profile::Dev => {
            cargo(["build", "--quiet", "--workspace", "--all-features", "--test", "proofs"]).pass()?;
            "debug"
        }
        Profile::Release => {
            cargo(["build", "--quiet", "--release", "--package", "proofs"]).pass()?;
            "release"
        }
    };
    let words = [command].into_iter().chain(args.rest.iter().map(String::as_str));
    program(built(folder, "proofs")?, words).pass()
}
