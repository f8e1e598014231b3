//! The program that `cargo xtask crash` kills: it drives a store and says aloud what was acknowledged.
//!
//! - [`say`]: the lines that it speaks; the judge reads them.
//! - [`look`]: opens a folder and tells every record in it.
//! - [`caller`]: one of many callers that claim, complete, release and go away.
//! - [`choice`]: what a caller does next, drawn from a seed.
//! - [`payload`]: outcomes whose every byte can be checked.
//! - [`liar`]: a disk that says it has synced and has not, for the control.

mod caller;
mod choice;
mod liar;
mod look;
mod payload;
mod say;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};

use caller::{Caller, Crowd};
use liar::Lie;
use look::Opened;

/// How often what is past its retention is removed: often, so that a kill hits it in the middle.
const SWEEP_EVERY: Duration = Duration::from_millis(20);

/// Drives a store in a folder, until it is killed.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tell what is in the folder, then go on with many callers until killed.
    Run {
        folder: PathBuf,
        /// How many callers ask at a time.
        #[arg(long, default_value_t = 32)]
        callers: u64,
        /// Where every choice comes from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Control: what the disk does instead of a sync.
        #[arg(long)]
        lie: Option<Lie>,
        /// Control: acknowledge a complete that is never made.
        #[arg(long)]
        forget: bool,
    },
    /// Tell what is in the folder, and end.
    Check { folder: PathBuf },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Check { folder } => runtime().and_then(|runtime| {
            let opened = look::open(&folder, None, 0)?;
            runtime.block_on(opened.tell()).map(drop)
        }),
        Command::Run { folder, callers, seed, lie, forget } => runtime().and_then(|runtime| {
            let opened = look::open(&folder, lie, seed)?;
            runtime.block_on(drive(opened, callers, seed, forget))
        }),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::refused(&error);
            ExitCode::from(3)
        }
    }
}

fn runtime() -> semel::Result<tokio::runtime::Runtime> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    built.map_err(|error| semel::Error::new(semel::ErrorKind::Unavailable, error.to_string()))
}

/// Runs for ever: whoever started it ends it.
async fn drive(opened: Opened, callers: u64, seed: u64, forget: bool) -> semel::Result<()> {
    let left = opened.tell().await?;
    let _sweeper = opened.semel.sweeper().every(SWEEP_EVERY).start();
    let crowd = Arc::new(Crowd::new(opened, left, seed, forget));
    let tasks: Vec<_> = (0..callers)
        .map(|number| tokio::spawn(Caller::new(Arc::clone(&crowd), seed, number).run()))
        .collect();
    for task in tasks {
        // A caller ends only with its store; the reason was said by then.
        drop(task.await);
    }
    Ok(())
}
