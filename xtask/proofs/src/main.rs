//! The proofs as commands. `cargo xtask` builds this and hands its arguments on.

use std::process::ExitCode;

use clap::Parser;
use proofs::{crash, fuzz, prove, scene, simulate, victims};

/// Proofs of semel at work.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    Crash(crash::Args),
    Prove(prove::Args),
    Simulate(simulate::Args),
    FuzzApi(fuzz::Args),
    Screenshots(scene::Args),
    Dashboard(scene::DashboardArgs),
    #[command(subcommand, hide = true)]
    Victim(victims::Victim),
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Crash(args) => crash::run(&args),
        Command::Prove(args) => prove::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::FuzzApi(args) => fuzz::run(&args),
        Command::Screenshots(args) => scene::run(&args),
        Command::Dashboard(args) => scene::dashboard(&args),
        Command::Victim(victim) => return victims::run(&victim).unwrap_or_else(|error| fail(&error)),
    };
    done.map_or_else(|error| fail(&error), |()| ExitCode::SUCCESS)
}

fn fail(error: &anyhow::Error) -> ExitCode {
    xtask::run::failed(&format!("{error:#}"));
    ExitCode::FAILURE
}
