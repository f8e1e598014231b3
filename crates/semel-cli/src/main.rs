//! `semel`, the command line of semel.
//!
//! # Layout
//!
//! - [`args`]: what was typed, and what it means.
//! - [`demo`]: `semel demo`, payments without semel and with it.
//! - [`serve`]: `semel serve`, keys for workers in every language, and pages for people. [`token`]: who may ask it.
//! - [`proxy`]: `semel proxy`, safe retries for a service that is not changed; [`proxy_plan`]: what it is told.
//! - [`consume`]: `semel consume`, a command for each event of a stream, once. [`offsets`], [`receipts`]: what it has read and done.
//! - [`mod@keys`]: `semel keys`, to find one record, look at it, and settle it.
//! - [`sweep`], [`stats`], [`watch`], [`check`], [`migrate`]: the store as a whole.
//! - [`transfer`]: `semel export` and `semel import`.
//! - [`mod@bench`]: `semel bench`, what a store can do on this machine.
//! - [`mod@file`]: `semel file`, for the day when an embedded store does not open.
//! - [`signals`], [`telemetry`]: what a running process is told, and what it says of itself.
//! - [`shell`]: completions and man pages.
//! - [`tally`]: what a walk through a whole store counted. [`opening`]: a store that is there, or what to do about it.
//!   [`terminal`]: what people see.

mod args;
mod bench;
mod check;
mod consume;
mod demo;
mod file;
mod keys;
mod migrate;
mod offsets;
mod opening;
mod proxy;
mod proxy_plan;
mod receipts;
mod serve;
mod shell;
mod signals;
mod stats;
mod sweep;
mod tally;
mod telemetry;
mod terminal;
mod token;
mod transfer;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use args::Command;

/// How long is waited at the end for what nobody waits for any more.
const PATIENCE: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    match run(args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if terminal::out::nobody_reads_on(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot start; are threads or memory limited?")?;
    let carried_out = runtime.block_on(carry_out(command));
    // Somebody may still be reading standard input, which nothing can interrupt.
    runtime.shutdown_timeout(PATIENCE);
    carried_out
}

async fn carry_out(command: Command) -> Result<()> {
    match command {
        Command::Bench(plan) => bench::run(&plan).await,
        Command::Check(plan) => check::run(&plan).await,
        Command::CheckProxy(plan) => plan.check(),
        Command::CheckServe(plan) => plan.check(),
        Command::Consume(plan) => consume::run(&plan).await,
        Command::Demo(plan) => demo::run(&plan).await,
        Command::Export(plan) => transfer::export(&plan).await,
        Command::File(look) => file::run(&look),
        Command::Import(plan) => transfer::import(&plan).await,
        Command::List(plan) => keys::list(&plan).await,
        Command::Migrate(store) => migrate::run(&store).await,
        Command::MoveOffset(plan) => offsets::move_one(&plan).await,
        Command::Offsets(plan) => offsets::list(&plan).await,
        Command::Proxy(plan) => proxy::run(&plan).await,
        Command::Receipts(plan) => receipts::list(&plan).await,
        Command::RecordReceipt(plan) => receipts::record(&plan).await,
        Command::Release(plan) => keys::release(&plan).await,
        Command::ReleaseReceipt(plan) => receipts::release(&plan).await,
        Command::Resolve(plan) => keys::resolve(&plan).await,
        Command::Serve(plan) => serve::run(&plan).await,
        Command::Shell(plan) => shell::run(&plan),
        Command::Show(plan) => keys::show(&plan).await,
        Command::ShowReceipt(plan) => receipts::show(&plan).await,
        Command::Stats(plan) => stats::run(&plan).await,
        Command::Sweep(plan) => sweep::run(&plan).await,
        Command::Token(plan) => token::run(&plan),
        Command::Watch(plan) => watch::run(&plan).await,
    }
}
