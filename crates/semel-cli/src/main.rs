//! `semel`, the command line of semel.
//!
//! # Layout
//!
//! Each command is a clap struct beside the code that runs it.
//!
//! - [`args`]: the command as a whole. [`store_arg`]: which store, and one that is there. [`remote`]: one behind a running server.
//! - [`demo`]: `semel demo`, payments without semel and with it.
//! - [`serve`]: `semel serve`, keys for workers in every language, and pages for people. [`token`]: who may ask it.
//! - [`proxy`]: `semel proxy`, safe retries for a service that is not changed.
//! - [`service`], [`telemetry`]: how a running process is told to reload and to stop, and what it says of itself.
//! - [`consume`]: `semel consume`, a command for each event of a stream, once. [`offsets`], [`receipts`]: what it has read and done.
//! - [`operator`], [`audit_arg`]: what operators do to records, and where that is written down.
//! - [`mod@keys`]: `semel keys`, to find one record, look at it, and settle it.
//! - [`sweep`], [`stats`], [`watch`], [`check`], [`migrate`]: the store as a whole.
//! - [`transfer`]: `semel export` and `semel import`.
//! - [`mod@bench`]: `semel bench`, what a store can do on this machine.
//! - [`mod@file`]: `semel file`, for the day when an embedded store does not open.
//! - [`shell`]: completions and man pages. [`terminal`]: what people see.

mod args;
mod audit_arg;
mod bench;
mod check;
mod consume;
mod demo;
mod file;
mod keys;
mod migrate;
mod offsets;
mod operator;
mod proxy;
mod receipts;
mod remote;
mod serve;
mod service;
mod shell;
mod stats;
mod store_arg;
mod sweep;
mod telemetry;
mod terminal;
mod token;
mod transfer;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use args::Root;
use clap::Parser;
use mimalloc::MiMalloc;

/// A server allocates on every core at once, and should give memory back after a peak: the system's allocator is slower at
/// the one and does not do the other.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How long is waited at the end for what nobody waits for any more.
const PATIENCE: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    match run(Root::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if terminal::out::nobody_reads_on(&error) => ExitCode::SUCCESS,
        Err(error) => match error.downcast::<clap::Error>() {
            // Arguments that mean nothing, which only their command could see: code 2.
            Ok(refused) => refused.exit(),
            Err(error) => {
                eprintln!("error: {error:#}");
                ExitCode::FAILURE
            }
        },
    }
}

fn run(root: Root) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot start; are threads or memory limited?")?;
    let ended = runtime.block_on(root.run());
    // Somebody may still be reading standard input, which nothing can interrupt.
    runtime.shutdown_timeout(PATIENCE);
    ended
}
