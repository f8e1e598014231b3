//! The project's own commands: `cargo xtask …`.

#![expect(clippy::arithmetic_side_effects, reason = "lines and offsets of files that fit into memory")]

mod bench;
mod build;
mod crashes;
mod forward;
mod mutants;
mod packages;
mod servers;
mod test;
mod tidy;
mod timetable;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use forward::Profile;
use xtask::run;

/// The project's own commands. Nothing to install: `cargo xtask` is an alias in .cargo/config.toml.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    after_help = "Every day:\n  \
                  cargo xtask test              everything a change must pass, in a few minutes\n  \
                  cargo xtask test --changed    the same for what a change touches, without crashes\n  \
                  cargo xtask tidy              style alone, in a second\n  \
                  cargo xtask servers           PostgreSQL, Redis and a Redis Cluster to run tests against\n\n\
                  Before a release:\n  \
                  cargo xtask verify            the same as test, and nothing may be skipped\n  \
                  cargo xtask mutants           do the tests notice when a rule is broken?\n  \
                  cargo xtask simulate 10000    ten thousand seeded histories\n  \
                  cargo xtask crash kill 10000  kill the embedded store ten thousand times\n  \
                  cargo xtask crash soak 3600   load, sweep, kill and verify one folder for an hour\n  \
                  cargo xtask crash power 10000 cut its power ten thousand times\n  \
                  cargo xtask crash postgres 500  stop and kill PostgreSQL; failover, redis, cluster likewise\n  \
                  cargo xtask crash consumer 5000  kill consumers of streams between every two steps\n  \
                  cargo xtask prove histories   two hundred real histories a store\n  \
                  cargo xtask prove disconnects clients that hang up at every byte; smuggling, slow, kill … likewise\n  \
                  cargo xtask crash failover 200  have its synchronous standby take over\n  \
                  cargo xtask crash standby-cut 100  cut its standby off, and break off the wait for it; partition, old-primary,\n  \
                                                pooler and sentinel likewise: the network fails in one place\n  \
                  cargo xtask crash redis 200   kill Redis under load; crash cluster: what a failover loses\n  \
                  cargo xtask fuzz-api 5000     requests made from the OpenAPI document, good and bad ones\n  \
                  cargo xtask screenshots       every page of the dashboard, light and dark, large and small\n  \
                  cargo xtask bench memory      measure against a plain map, on this machine\n  \
                  cargo xtask bench file        the durable store against embedded databases, on this disk\n  \
                  cargo xtask bench postgres    PostgreSQL and redis, beside what is written per call\n  \
                  cargo xtask bench http        the layer and the proxy, beside others and nginx\n  \
                  cargo xtask bench server      the claim server, beside a bare echo and Redis"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Test(test::Args),
    Verify(test::VerifyArgs),
    Tidy(tidy::Args),
    /// Run seeded histories through the simulator; a failing seed is printed and fails again when it is rerun.
    Simulate(forward::Args),
    Mutants(mutants::Args),
    Bench(bench::Args),
    /// Kill a store at random instants, or cut its power, and look whether it kept its word.
    Crash(forward::Args),
    /// Prove a store on a real server (PostgreSQL, Redis and Redis Cluster, one after the other), or attack the proxy.
    Prove(forward::Args),
    /// Send requests to the claim server that its own OpenAPI document describes, good and bad ones.
    FuzzApi(forward::Args),
    /// Make pictures of every page of the dashboard, in light and dark, on a desktop and on a phone.
    Screenshots(forward::Args),
    /// Start a claim server in memory with a day's work in it, to look at its pages.
    Dashboard(forward::Args),
    Servers(servers::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Test(args) => test::run(&args),
        Command::Verify(args) => test::verify(&args),
        Command::Tidy(args) => tidy::run(&args),
        Command::Mutants(args) => mutants::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Servers(args) => servers::run(&args),
        Command::Crash(args) => forward::run("crash", &args, Profile::Dev),
        Command::Dashboard(args) => forward::run("dashboard", &args, Profile::Dev),
        Command::Simulate(args) => forward::run("simulate", &args, Profile::Release),
        Command::Prove(args) => forward::run("prove", &args, Profile::Release),
        Command::FuzzApi(args) => forward::run("fuzz-api", &args, Profile::Release),
        Command::Screenshots(args) => forward::run("screenshots", &args, Profile::Release),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            run::failed(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
