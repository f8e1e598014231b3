//! Which victim, on which store.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::caller::{Caller, Crowd};
use super::liar::Lie;
use super::opened::Opened;
use super::{say, transaction};

/// How many callers ask at a time.
const CALLERS: u64 = 32;

/// Drive a store until killed, for `crash`.
#[derive(Debug, clap::Subcommand)]
pub enum Victim {
    /// Tell what is in a folder, then go on with many callers until killed.
    Run {
        /// The folder.
        folder: PathBuf,
        /// Where every choice comes from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Control: what the disk does instead of a sync.
        #[arg(long)]
        lie: Option<Lie>,
        /// Control: acknowledge a complete that is never made.
        #[arg(long)]
        forget: bool,
        /// How far its clock is ahead of the machine's.
        #[arg(long, value_name = "MS", default_value_t = 0)]
        clock_ahead_ms: u64,
    },
    /// Tell what is in a folder, and end.
    Check {
        /// The folder.
        folder: PathBuf,
        /// How far its clock is ahead of the machine's.
        #[arg(long, value_name = "MS", default_value_t = 0)]
        clock_ahead_ms: u64,
    },
    /// Tell what is in a store on a server, then drive it with many callers until the input ends. A line on the input stops
    /// all callers between two requests, tells every record, and lets them go on.
    Load {
        /// Where the store is, such as `postgres://semel@127.0.0.1:5432/semel`.
        url: String,
        /// Where every choice comes from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Charge and complete in one transaction of PostgreSQL, over and over, until killed.
    Transaction {
        /// The server.
        url: String,
        /// Control: complete beside the transaction.
        #[arg(long)]
        apart: bool,
    },
}

/// Runs it; a store that cannot be opened is said on the output.
pub fn run(victim: &Victim) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("no runtime")?;
    let done = match victim {
        Victim::Transaction { url, apart } => {
            runtime.block_on(transaction::charge_until_killed(url, *apart))?;
            Ok(())
        }
        Victim::Check { folder, clock_ahead_ms } => Opened::folder(folder, None, 0, *clock_ahead_ms)
            .and_then(|opened| runtime.block_on(opened.tell()).map(drop)),
        Victim::Run { folder, seed, lie, forget, clock_ahead_ms } => {
            Opened::folder(folder, *lie, *seed, *clock_ahead_ms)
                .and_then(|opened| runtime.block_on(in_folder(opened, *seed, *forget)))
        }
        Victim::Load { url, seed } => runtime.block_on(on_server(url, *seed)),
    };
    Ok(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::refused(&error);
            ExitCode::from(3)
        }
    })
}

/// Runs for ever: whoever started it ends it.
async fn in_folder(opened: Opened, seed: u64, forget: bool) -> semel::Result<()> {
    let left = opened.tell().await?;
    for caller in callers(&Arc::new(Crowd::new(opened, left, seed, forget)), seed) {
        // A caller ends only with its store; the reason was said by then.
        drop(caller.await);
    }
    Ok(())
}

async fn on_server(url: &str, seed: u64) -> semel::Result<()> {
    let opened = Opened::server(url).await?;
    let left = opened.tell().await?;
    let crowd = Arc::new(Crowd::new(opened, left, seed, false));
    drop(callers(&crowd, seed));
    let mut asked = lines();
    while asked.recv().await.is_some() {
        let mut looks = crowd.asker.everybody_waits().await;
        *looks = looks.wrapping_add(1);
        crowd.opened.tell().await?;
    }
    Ok(())
}

fn callers(crowd: &Arc<Crowd>, seed: u64) -> Vec<tokio::task::JoinHandle<()>> {
    (0..CALLERS).map(|number| tokio::spawn(Caller::new(Arc::clone(crowd), seed, number).run())).collect()
}

/// Something for every line of the input; ends with it.
fn lines() -> UnboundedReceiver<()> {
    let (send, receive) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if line.is_err() || send.send(()).is_err() {
                break;
            }
        }
    });
    receive
}
