//! What `cargo xtask crash postgres`, `failover`, `redis` and `cluster` put on a server before they hurt it: many callers
//! who ask again until they are answered, and say aloud what they ask and what was acknowledged. The lines are those of
//! `crash_victim`, and so are the callers' choices and outcomes.
//!
//! A line `look` on its input has everybody stop between two asks, every record told, and everybody go on. It ends with
//! its input.

mod ask;
mod caller;
#[path = "../../../semel-file/examples/crash_victim/choice.rs"]
mod choice;
mod look;
#[path = "../../../semel-file/examples/crash_victim/payload.rs"]
mod payload;
#[path = "../../../semel-file/examples/crash_victim/say.rs"]
mod say;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use caller::{Caller, Crowd};

/// How often what is past its retention is removed: often, so that a crash hits it in the middle.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// Tells what is in a store, then drives it with many callers until its input ends.
#[derive(Debug, Parser)]
struct Cli {
    /// Where the store is, such as `postgres://semel@127.0.0.1:5432/semel`.
    url: String,
    /// How many callers ask at a time.
    #[arg(long, default_value_t = 32)]
    callers: u64,
    /// Where every choice comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match drive(&cli).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::refused(&error);
            ExitCode::from(3)
        }
    }
}

async fn drive(cli: &Cli) -> semel::Result<()> {
    let opened = look::open(&cli.url).await?;
    let left = opened.tell().await?;
    let _sweeper = opened.semel.sweeper().every(SWEEP_EVERY).start();
    let crowd = Arc::new(Crowd::new(opened, left, cli.seed));
    for number in 0..cli.callers {
        tokio::spawn(Caller::new(Arc::clone(&crowd), cli.seed, number).run());
    }
    let mut asked = looks();
    while asked.recv().await.is_some() {
        let mut looks = crowd.asker.everybody_waits().await;
        *looks = looks.wrapping_add(1);
        crowd.opened.tell().await?;
    }
    Ok(())
}

/// Something for every line of the input; ends with it.
fn looks() -> UnboundedReceiver<()> {
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
